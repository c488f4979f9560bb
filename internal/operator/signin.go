package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"drawbridge/internal/lending"
	"drawbridge/internal/network"
	"drawbridge/internal/postgres"
)

// The limits on wrong passwords and on wrong codes. They hold across processes.
const (
	failureWindow      = 15 * time.Minute
	failuresPerAccount = 5
	failuresPerAddress = 20
)

// maxEmail is the length of the longest possible address, in bytes.
const maxEmail = 254

// What is tried; the limits count each separately.
const (
	triedPasswords = "passwords"
	triedCodes     = "codes"
)

// Visitor identifies the origin of an attempt.
type Visitor struct {
	// Address is the network address.
	Address string
	// Known is the device that signed in to the account before, or the account's session that must
	// authenticate again; empty for an unknown visitor. It is counted separately, so that unknown
	// visitors cannot lock out the account's owner.
	Known string
}

// keys returns the account and the address under which an attempt is counted. The first two
// words of an account's key contain no blank, so that no address that somebody types yields
// another key. Known visitors are not counted by address.
func (v Visitor) keys(what, email string) (account, address string) {
	if v.Known != "" {
		return what + " " + v.Known + " " + email, ""
	}
	return what + " stranger " + email, network.Of(v.Address)
}

// SignIn checks an address and password.
//
// Errors: RATE_LIMITED after too many wrong passwords for the account or from the network
// address; UNAUTHORIZED, without distinction, for an unknown user, a disabled one and a wrong
// password; UNAVAILABLE while too many passwords are being checked.
func (s *Service) SignIn(ctx context.Context, email, password string, from Visitor) (User, error) {
	email = normalEmail(email)
	if len(email) > maxEmail || !utf8.ValidString(email) || strings.ContainsRune(email, 0) {
		email = "" // nobody's address, checked like any other
	}
	account, address := from.keys(triedPasswords, email)
	try, err := s.countAttempt(ctx, account, address, triedPasswords)
	if err != nil {
		return User{}, err
	}
	user, hash, err := find(ctx, s.DB, email)
	if err != nil {
		return User{}, err
	}
	matches, renewed, err := s.hasher().check(ctx, password, hash)
	if lending.ErrorCode(err) == lending.CodeUnavailable {
		return User{}, errors.Join(err, s.uncountAttempt(ctx, try)) // it was not checked
	}
	if err != nil {
		return User{}, err
	}
	if !matches || user.Email == "" || user.DisabledAt != nil || user.passwordExpired(s.DB.Now()) {
		return User{}, lending.NewError(lending.CodeUnauthorized,
			"The e-mail address or the password is wrong.")
	}
	if renewed != "" {
		// The password is unchanged, so the sessions continue.
		_, err := s.DB.ExecContext(ctx, `
			UPDATE users SET password_hash = $3, credential = coalesce(credential, md5(password_hash))
			 WHERE user_uid = $1 AND password_hash = $2`, user.UID, hash, renewed)
		if err != nil {
			return User{}, fmt.Errorf("renewing the hash of the password of %s: %w", user.Email, err)
		}
	}
	return user, s.clearAttempts(ctx, account)
}

// CheckPassword checks whether a signed-in user knows their password. The limit is that of
// SignIn, counted for the session alone. Errors: as SignIn.
func (s *Service) CheckPassword(ctx context.Context, signed Signed, password string) error {
	from, email := Visitor{Known: "session:" + signed.Session.UID.String()}, normalEmail(signed.Email)
	_, err := s.SignIn(ctx, email, password, from)
	if lending.ErrorCode(err) != lending.CodeUnauthorized {
		return err
	}
	// A password that has been changed meanwhile, as by the same form sent twice, is no guess.
	current, _, err := find(ctx, s.DB, email)
	if err == nil && current.Credential != signed.Credential {
		account, _ := from.keys(triedPasswords, email)
		err = s.clearAttempts(ctx, account)
	}
	if err != nil {
		return err
	}
	return lending.NewError(lending.CodeUnauthorized, "The password is wrong.")
}

// clearAttempts deletes the failed attempts of an account.
func (s *Service) clearAttempts(ctx context.Context, account string) error {
	_, err := s.DB.ExecContext(ctx, `DELETE FROM sign_in_failures WHERE account = $1`, account)
	if err != nil {
		return fmt.Errorf("forgetting the wrong tries of %s: %w", account, err)
	}
	return nil
}

// find returns a user and the hash of their password; for an unknown address, the zero user and
// no hash.
func find(ctx context.Context, db postgres.Querier, email string) (User, string, error) {
	var row struct {
		User
		Hash string `db:"password_hash"`
	}
	err := db.GetContext(ctx, &row,
		`SELECT `+userColumns+`, password_hash FROM users WHERE lower(email) = $1`, email)
	if postgres.IsNoRows(err) {
		return User{}, "", nil
	}
	if err != nil {
		return User{}, "", fmt.Errorf("loading user %s: %w", email, err)
	}
	return row.User, row.Hash, nil
}

// countAttempt counts an attempt as wrong before the password is checked, so that many at once
// cannot slip past the limits; a correct one clears the account's count. Attempts beyond the
// limits are not counted, so waiting always helps. The refusal names what was wrong too often.
func (s *Service) countAttempt(
	ctx context.Context, account, address, what string,
) (try int64, err error) {
	now := s.DB.Now()
	err = s.DB.GetContext(ctx, &try, `
		INSERT INTO sign_in_failures (account, address, failed_at) VALUES ($1, $2, $3)
		RETURNING failure_id`, account, address, now)
	if err != nil {
		return 0, fmt.Errorf("counting a sign-in: %w", err)
	}
	var counts struct {
		Account int `db:"account"`
		Address int `db:"address"`
	}
	err = s.DB.GetContext(ctx, &counts, `
		SELECT (SELECT count(*) FROM sign_in_failures
		         WHERE account = $1 AND failed_at > $3) AS account,
		       (SELECT count(*) FROM sign_in_failures
		         WHERE address = $2 AND $2 <> '' AND failed_at > $3) AS address`,
		account, address, now.Add(-failureWindow))
	if err != nil {
		return 0, fmt.Errorf("counting wrong tries: %w", err)
	}
	if counts.Account <= failuresPerAccount && counts.Address <= failuresPerAddress {
		return try, nil
	}
	if err := s.uncountAttempt(ctx, try); err != nil {
		return 0, err
	}
	return 0, lending.NewError(lending.CodeRateLimited,
		"Too many wrong %s. Wait %d minutes and try again.", what, int(failureWindow.Minutes()))
}

// uncountAttempt deletes one attempt.
func (s *Service) uncountAttempt(ctx context.Context, try int64) error {
	_, err := s.DB.ExecContext(ctx, `DELETE FROM sign_in_failures WHERE failure_id = $1`, try)
	if err != nil {
		return fmt.Errorf("taking back a sign-in: %w", err)
	}
	return nil
}
