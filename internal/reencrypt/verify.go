package reencrypt

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"drawbridge/internal/secret"
)

// Verification is what came of opening every value.
type Verification struct {
	// Opened counts the values that open by the id of their key, Unknown those
	// whose key is not in the ring by the id that they name.
	Opened, Unknown map[string]int
	// Broken names the values that no key can open any more, at most
	// MaxBroken of BrokenCount.
	Broken      []string
	BrokenCount int
}

// MaxBroken is how many broken values are named.
const MaxBroken = 20

// Verify opens every sealed value and throws it away. It changes nothing.
func (s *Service) Verify(ctx context.Context) (Verification, error) {
	found := Verification{Opened: map[string]int{}, Unknown: map[string]int{}}
	for _, column := range Columns() {
		err := s.read(ctx, column, "", func(batch []value) error {
			for _, one := range batch {
				s.verify(column, one, &found)
			}
			return nil
		})
		if err != nil {
			return Verification{}, fmt.Errorf("opening the values of %s: %w", column, err)
		}
	}
	return found, nil
}

func (s *Service) verify(column Column, one value, found *Verification) {
	id, _ := secret.KeyID(one.sealed)
	_, err := s.Keys.Open(one.sealed, column.BoundTable, column.BoundName, one.key[0])
	switch {
	case err == nil:
		found.Opened[id]++
	case errors.Is(err, secret.ErrUnknownKey):
		found.Unknown[id]++
	default:
		found.BrokenCount++
		if len(found.Broken) < MaxBroken {
			found.Broken = append(found.Broken,
				fmt.Sprintf("%s of %s", column, strings.Join(one.key, "/")))
		}
	}
}
