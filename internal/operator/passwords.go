package operator

import (
	"context"
	_ "embed" // the list of common passwords
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// The bounds of a password, in characters. The upper one keeps an attacker from wasting our time
// on hashing.
const (
	minPassword = 12
	maxPassword = 200
	// minDistinct is how many different characters a password needs, so that length alone is not
	// enough.
	minDistinct = 5
)

//go:embed common.txt
var commonText string

// common holds the phrases that attackers try first, without the digits and marks at their ends.
var common = sync.OnceValue(func() map[string]bool {
	list := make(map[string]bool)
	for line := range strings.Lines(commonText) {
		list[core(line)] = true
	}
	return list
})

// core strips the usual decoration from a password: case, gaps, and digits and marks at the
// ends.
func core(password string) string {
	password = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '-' || r == '_' || r == '.' {
			return -1
		}
		return unicode.ToLower(r)
	}, password)
	return strings.TrimFunc(password, func(r rune) bool { return !unicode.IsLetter(r) })
}

// checkPassword applies the rules for a password that a person chose: long enough, not one
// character repeated, not a common password, and not the user's own name or address.
func checkPassword(errs *lending.FieldErrors, password, email, name string) {
	runes := []rune(password)
	if len(runes) < minPassword || len(runes) > maxPassword {
		errs.Add("password", `"password" must have %d to %d characters`, minPassword, maxPassword)
		return
	}
	slices.Sort(runes)
	if len(slices.Compact(runes)) < minDistinct {
		errs.Add("password", `"password" must have at least %d different characters`, minDistinct)
		return
	}
	local, domain, _ := strings.Cut(email, "@")
	bare := core(password)
	switch {
	case bare == "" || common()[bare]:
		errs.Add("password", `"password" is too easy to guess; `+
			`choose a few words that have nothing to do with each other`)
	case slices.Contains([]string{
		core(email), core(local), core(name), core(local + local), core(domain),
	}, bare):
		errs.Add("password", `"password" must not be the user's name or address`)
	}
}

// SetPassword replaces the password of the user with an address, ends their sessions and returns
// the user. With mustChange they must choose another one at the next sign-in. Errors:
// VALIDATION_ERROR, NOT_FOUND.
func (s *Service) SetPassword(
	ctx context.Context, tx *postgres.Tx, email, password string, mustChange bool,
) (User, error) {
	user, err := LockUser(ctx, tx, email)
	if err != nil {
		return User{}, err
	}
	var errs lending.FieldErrors
	checkPassword(&errs, password, user.Email, user.Name)
	if err := errs.Err(); err != nil {
		return User{}, err
	}
	return s.storePassword(ctx, tx, user, newPassword{text: password, mustChange: mustChange})
}

// Accepts reports whether a user may sign in with a password. It does not count as an attempt.
func (s *Service) Accepts(ctx context.Context, email, password string) (bool, error) {
	user, hash, err := find(ctx, s.DB, normalEmail(email))
	if err != nil || user.Email == "" || user.DisabledAt != nil {
		return false, err
	}
	matches, _, err := s.hasher().check(ctx, password, hash)
	return matches && !user.passwordExpired(s.DB.Now()), err
}

// passwordExpired reports whether a one-time password was not used in time.
func (u User) passwordExpired(now time.Time) bool {
	return u.PasswordExpiresAt != nil && now.After(*u.PasswordExpiresAt)
}

// ChangePassword replaces a user's own password, which they proved to know, and ends their
// sessions. Errors: VALIDATION_ERROR, also if the password is unchanged; INVALID_STATE if
// somebody has set another one since the user was read.
func (s *Service) ChangePassword(
	ctx context.Context, tx *postgres.Tx, user User, password string,
) (User, error) {
	var errs lending.FieldErrors
	checkPassword(&errs, password, user.Email, user.Name)
	if err := errs.Err(); err != nil {
		return User{}, err
	}
	_, hash, err := find(ctx, tx, normalEmail(user.Email))
	if err != nil {
		return User{}, err
	}
	same, _, err := s.hasher().check(ctx, password, hash)
	if err != nil {
		return User{}, err
	}
	if same {
		return User{}, lending.Invalid("password", `"password" must differ from the current one`)
	}
	return s.storePassword(ctx, tx, user, newPassword{text: password, before: user.Credential})
}

// newPassword is a password to store.
type newPassword struct {
	text       string
	mustChange bool
	// once makes it stop working after oncePasswordLife.
	once bool
	// before is the credential that it replaces, empty for any.
	before string
}

func (s *Service) storePassword(
	ctx context.Context, tx *postgres.Tx, user User, password newPassword,
) (User, error) {
	hash, err := s.hasher().hash(ctx, password.text)
	if err != nil {
		return User{}, err
	}
	var expires any
	if password.once {
		expires = tx.Now.Add(oncePasswordLife)
	}
	var changed User
	err = tx.GetContext(ctx, &changed, `
		UPDATE users
		   SET password_hash = $2, credential = NULL, demo_password = false, must_change_password = $3,
		       password_changed_at = $4, password_expires_at = $5
		 WHERE user_uid = $1
		   AND $6 IN ('', coalesce(credential, md5(password_hash)))
		RETURNING `+userColumns, user.UID, hash, password.mustChange, tx.Now, expires,
		password.before)
	if postgres.IsNoRows(err) {
		return User{}, lending.NewError(lending.CodeInvalidState,
			"The password was changed by somebody else meanwhile. Sign in again.")
	}
	if err != nil {
		return User{}, fmt.Errorf("storing the password of %s: %w", user.Email, err)
	}
	return changed, s.EndSessions(ctx, tx, user.UID)
}
