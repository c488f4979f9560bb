package operator

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/alexedwards/argon2id"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// The limits on wrong passwords. They hold over all processes.
const (
	failureWindow      = 15 * time.Minute
	failuresPerAccount = 5
	failuresPerAddress = 20
)

// maxEmail is the longest address there is, in bytes.
const maxEmail = 254

// comparing holds a slot for each password that is being checked.
var comparing = make(chan struct{}, 4)

// dummyHash is what an unknown address is checked against, so that it takes as
// long as a known one.
var dummyHash = sync.OnceValues(func() (string, error) {
	return argon2id.CreateHash("no account has this password", hashParams)
})

// SignIn checks an address and password that came from a network address.
//
// Errors: RATE_LIMITED after too many wrong ones for the account or from the
// network address, UNAUTHORIZED alike for an unknown user, a disabled one and
// a wrong password.
func (s *Service) SignIn(ctx context.Context, email, password, address string) (User, error) {
	email = normalEmail(email)
	if len(email) > maxEmail || !utf8.ValidString(email) || strings.ContainsRune(email, 0) {
		email = "" // nobody's, and checked like any other
	}
	if err := s.countTry(ctx, email, address, "passwords"); err != nil {
		return User{}, err
	}
	user, hash, err := s.find(ctx, email)
	if err != nil {
		return User{}, err
	}
	matches, err := compare(ctx, password, hash)
	if err != nil {
		return User{}, fmt.Errorf("checking the password of %s: %w", email, err)
	}
	late := user.PasswordExpiresAt != nil && s.DB.Now().After(*user.PasswordExpiresAt)
	if !matches || user.Email == "" || user.DisabledAt != nil || late {
		return User{}, lending.NewError(lending.CodeUnauthorized,
			"The e-mail address or the password is wrong.")
	}
	return user, s.forgive(ctx, email)
}

// CheckPassword tells whether a signed-in user knows their password. It counts
// as SignIn does. Errors: RATE_LIMITED, UNAUTHORIZED.
func (s *Service) CheckPassword(ctx context.Context, user User, password, address string) error {
	_, err := s.SignIn(ctx, user.Email, password, address)
	if lending.ErrorCode(err) == lending.CodeUnauthorized {
		return lending.NewError(lending.CodeUnauthorized, "The password is wrong.")
	}
	return err
}

// forgive forgets the wrong tries of an account.
func (s *Service) forgive(ctx context.Context, account string) error {
	_, err := s.DB.ExecContext(ctx, `DELETE FROM sign_in_failures WHERE account = $1`, account)
	if err != nil {
		return fmt.Errorf("forgetting the wrong tries of %s: %w", account, err)
	}
	return nil
}

// find returns a user and the hash of their password, for an unknown address
// the zero user and a hash that nothing matches.
func (s *Service) find(ctx context.Context, email string) (User, string, error) {
	var row struct {
		User
		Hash string `db:"password_hash"`
	}
	err := s.DB.GetContext(ctx, &row,
		`SELECT `+userColumns+`, password_hash FROM users WHERE lower(email) = $1`, email)
	if postgres.IsNoRows(err) {
		hash, err := dummyHash()
		if err != nil {
			return User{}, "", fmt.Errorf("hashing a password: %w", err)
		}
		return User{}, hash, nil
	}
	if err != nil {
		return User{}, "", fmt.Errorf("loading user %s: %w", email, err)
	}
	return row.User, row.Hash, nil
}

// countTry counts a try as wrong before the password is looked at, so that many
// at once cannot slip past the limits; a right one clears the account's count.
// Tries beyond the limits are not counted: waiting always helps. The refusal
// names what was wrong too often.
func (s *Service) countTry(ctx context.Context, email, address, what string) error {
	now := s.DB.Now()
	var try int64
	err := s.DB.GetContext(ctx, &try, `
		INSERT INTO sign_in_failures (account, address, failed_at) VALUES ($1, $2, $3)
		RETURNING failure_id`, email, address, now)
	if err != nil {
		return fmt.Errorf("counting a sign-in: %w", err)
	}
	var counts struct {
		Account int `db:"account"`
		Address int `db:"address"`
	}
	err = s.DB.GetContext(ctx, &counts, `
		SELECT (SELECT count(*) FROM sign_in_failures
		         WHERE account = $1 AND failed_at > $3) AS account,
		       (SELECT count(*) FROM sign_in_failures
		         WHERE address = $2 AND failed_at > $3) AS address`,
		email, address, now.Add(-failureWindow))
	if err != nil {
		return fmt.Errorf("counting wrong tries: %w", err)
	}
	if counts.Account <= failuresPerAccount && counts.Address <= failuresPerAddress {
		return nil
	}
	_, err = s.DB.ExecContext(ctx, `DELETE FROM sign_in_failures WHERE failure_id = $1`, try)
	if err != nil {
		return fmt.Errorf("taking back a sign-in: %w", err)
	}
	return lending.NewError(lending.CodeRateLimited,
		"Too many wrong %s. Wait %d minutes and try again.", what, int(failureWindow.Minutes()))
}

// compare bounds how many passwords are checked at once: each takes 64 MiB.
func compare(ctx context.Context, password, hash string) (bool, error) {
	select {
	case comparing <- struct{}{}:
		defer func() { <-comparing }()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	return argon2id.ComparePasswordAndHash(password, hash)
}

// PurgeFailures deletes wrong passwords that no longer count.
func (s *Service) PurgeFailures(ctx context.Context) error {
	_, err := s.DB.ExecContext(ctx, `DELETE FROM sign_in_failures WHERE failed_at < $1`,
		s.DB.Now().Add(-failureWindow))
	if err != nil {
		return fmt.Errorf("purging wrong passwords: %w", err)
	}
	return nil
}
