package webhook

import (
	"context"
	"time"
)

// checkTimeout bounds the DNS question of a check.
const checkTimeout = 5 * time.Second

// CheckDestination asks DNS about an endpoint before it is saved. A name that
// does not resolve yet is a warning; one that leads to an address that is not
// allowed is a VALIDATION_ERROR of "url". What is wrong with the URL itself is
// left to Subscribe and Amend, which name it with every other fault. It waits
// for DNS, so it belongs outside any transaction.
func (s *Service) CheckDestination(ctx context.Context, rawURL string) (warning string, err error) {
	parsed, err := s.Policy.CheckURL(rawURL)
	if err != nil {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return s.Policy.CheckResolved(ctx, nil, parsed)
}
