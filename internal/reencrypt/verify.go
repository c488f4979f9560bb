package reencrypt

import (
	"context"
	"errors"
	"fmt"

	"drawbridge/internal/secret"
)

// Verification is the result of decrypting every value.
type Verification struct {
	// Opened counts the values that can be decrypted, by the id of their key; Unknown those whose key
	// is not in the ring, by the id that they name.
	Opened, Unknown map[string]int
	// Broken names the values that no key can decrypt any more, at most maxBroken of BrokenCount.
	Broken      []string
	BrokenCount int
}

// maxBroken is how many broken values are named.
const maxBroken = 20

// Verify decrypts every value and discards it. It changes nothing.
func (s *Service) Verify(ctx context.Context) (Verification, error) {
	found := Verification{Opened: map[string]int{}, Unknown: map[string]int{}}
	for _, column := range Columns() {
		err := s.read(ctx, column, "", func(batch []value) error {
			for _, one := range batch {
				id, _ := secret.KeyID(one.sealed)
				_, err := s.open(column, one)
				switch {
				case err == nil:
					found.Opened[id]++
				case errors.Is(err, secret.ErrUnknownKey):
					found.Unknown[id]++
				default:
					if found.BrokenCount++; len(found.Broken) < maxBroken {
						found.Broken = append(found.Broken, fmt.Sprintf("%s of %s", column, one.row()))
					}
				}
			}
			return nil
		})
		if err != nil {
			return Verification{}, fmt.Errorf("opening the values of %s: %w", column, err)
		}
	}
	return found, nil
}
