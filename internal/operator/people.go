package operator

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
)

const (
	// oncePasswordLife is how long a one-time password works.
	oncePasswordLife = 7 * 24 * time.Hour
	// oncePasswordBytes is its entropy, enough that attempts need no limit.
	oncePasswordBytes = 15
)

// UserFilter selects users. The zero value selects all.
type UserFilter struct {
	Role Role
	// Disabled selects the users who cannot, or those who can, sign in; nil selects both.
	Disabled *bool
	// Text is the beginning of a name or an address, in any case.
	Text string
	// After is the address of the last user of the previous page.
	After string
	// Limit is the maximum number of users; zero means all.
	Limit int
}

// Users lists users by address and reports whether there are more.
func (s *Service) Users(ctx context.Context, filter UserFilter) ([]User, bool, error) {
	c := filter.conditions()
	c.When(filter.After != "", `lower(email) > ?`, normalEmail(filter.After))
	limit := ""
	if filter.Limit > 0 {
		limit = ` LIMIT ` + strconv.Itoa(filter.Limit+1)
	}
	var users []User
	err := s.DB.SelectContext(ctx, &users, `SELECT `+userColumns+`
		  FROM users`+c.Where()+` ORDER BY lower(email)`+limit, c.Args...)
	if err != nil {
		return nil, false, fmt.Errorf("listing users: %w", err)
	}
	if filter.Limit > 0 && len(users) > filter.Limit {
		return users[:filter.Limit], true, nil
	}
	return users, false, nil
}

// NewestUsers returns a page of all users, newest first, and the cursor of the next page.
// Error: VALIDATION_ERROR for the limit.
func (s *Service) NewestUsers(
	ctx context.Context, page postgres.Paging,
) ([]User, postgres.Cursor, error) {
	return postgres.List[User]{
		What: "the newest users", Select: `SELECT ` + userColumns + ` FROM users`,
		At: `created_at`, UID: `user_uid`,
		Place: func(u User) postgres.Cursor { return postgres.Cursor{At: u.CreatedAt, UID: u.UID} },
	}.Page(ctx, s.DB, postgres.Conditions{}, page)
}

// CountUsers counts the users that a filter selects on all pages.
func (s *Service) CountUsers(ctx context.Context, filter UserFilter) (int, error) {
	c := filter.conditions()
	var count int
	err := s.DB.GetContext(ctx, &count, `SELECT count(*) FROM users`+c.Where(), c.Args...)
	if err != nil {
		return 0, fmt.Errorf("counting users: %w", err)
	}
	return count, nil
}

// conditions returns the filter as SQL, without the position in the list.
func (f UserFilter) conditions() (c postgres.Conditions) {
	c.When(f.Role != "", `role = ?`, string(f.Role))
	if f.Disabled != nil {
		c.Add(`(disabled_at IS NOT NULL) = ?`, *f.Disabled)
	}
	if text := strings.ToLower(strings.TrimSpace(f.Text)); text != "" {
		begins := postgres.LikePrefix(text)
		c.Add(`lower(email) LIKE ? OR lower(name) LIKE ?`, begins, begins)
	}
	return c
}

// Invite adds a user with a one-time password, which must be changed at the first sign-in and
// expires after seven days. It is returned here and cannot be shown again. Errors: as Create.
func (s *Service) Invite(
	ctx context.Context, tx *postgres.Tx, request NewUser,
) (User, secret.String, error) {
	once := newOncePassword()
	request.Password, request.MustChange, request.Demo = once.Reveal(), true, false
	user, err := s.Create(ctx, tx, request)
	if err != nil {
		return User{}, secret.String{}, err
	}
	user, err = s.change(ctx, tx, user.UID, `password_expires_at = $2`, tx.Now.Add(oncePasswordLife))
	return user, once, err
}

// ResetPassword gives a user a one-time password, as Invite does, and ends their sessions.
// Error: NOT_FOUND.
func (s *Service) ResetPassword(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID,
) (User, secret.String, error) {
	// Two admins who reset each other are serialised: each needs the session that the other ends.
	user, err := lockUnlessLastAdmin(ctx, tx, uid, func(User) bool { return false })
	if err != nil {
		return User{}, secret.String{}, err
	}
	once := newOncePassword()
	user, err = s.storePassword(ctx, tx, user,
		newPassword{text: once.Reveal(), mustChange: true, once: true})
	return user, once, err
}

// SetRole changes a user's role and ends their sessions, so that nothing continues under the old
// one. Errors: NOT_FOUND, VALIDATION_ERROR for an unknown role, INVALID_STATE for the last
// admin.
func (s *Service) SetRole(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, role Role,
) (User, error) {
	if !role.Allows(RoleSupport) {
		return User{}, lending.Invalid("role", `"role" must be admin, operator or support`)
	}
	user, err := lockUnlessLastAdmin(ctx, tx, uid, func(u User) bool { return u.Role != role })
	if err != nil || user.Role == role {
		return user, err
	}
	return s.change(ctx, tx, uid, `role = $2`, string(role))
}

// SetDisabled ends a user's access, sessions included, or restores it. Errors: NOT_FOUND,
// INVALID_STATE for the last admin.
func (s *Service) SetDisabled(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, disabled bool,
) (User, error) {
	user, err := lockUnlessLastAdmin(ctx, tx, uid, func(User) bool { return disabled })
	if err != nil || disabled == (user.DisabledAt != nil) {
		return user, err
	}
	var at *time.Time
	if disabled {
		at = &tx.Now
	}
	return s.change(ctx, tx, uid, `disabled_at = $2`, at)
}

// Disable is SetDisabled for the owner of the machine: it can also disable the last admin, since
// the owner can create another. Error: NOT_FOUND.
func (s *Service) Disable(ctx context.Context, tx *postgres.Tx, email string) (User, error) {
	user, err := LockUser(ctx, tx, email)
	if err != nil || user.DisabledAt != nil {
		return user, err
	}
	return s.change(ctx, tx, user.UID, `disabled_at = $2`, tx.Now)
}

// lockUnlessLastAdmin locks and returns a user who may be about to cease being an admin, and
// refuses if no admin who can sign in would be left. It locks the admins first and in a fixed
// order, so that two of them cannot remove each other.
func lockUnlessLastAdmin(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, leaves func(User) bool,
) (User, error) {
	var admins []uuid.UUID
	err := tx.SelectContext(ctx, &admins, `
		SELECT user_uid FROM users
		 WHERE role = 'admin' AND disabled_at IS NULL
		 ORDER BY user_uid FOR UPDATE`)
	if err != nil {
		return User{}, fmt.Errorf("counting the admins: %w", err)
	}
	user, err := lock(ctx, tx, `user_uid = $1`, uid)
	if err != nil {
		return User{}, err
	}
	if leaves(user) && slices.Contains(admins, uid) && len(admins) < 2 {
		return User{}, lending.NewError(lending.CodeInvalidState,
			"%s is the last admin who can sign in; make somebody else an admin first", user.Email)
	}
	return user, nil
}

// change assigns one column of a user, ends their sessions and returns the user.
func (s *Service) change(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, assignment string, value any,
) (User, error) {
	var user User
	err := tx.GetContext(ctx, &user,
		`UPDATE users SET `+assignment+` WHERE user_uid = $1 RETURNING `+userColumns, uid, value)
	if err != nil {
		return User{}, fmt.Errorf("changing user %s: %w", uid, err)
	}
	return user, s.EndSessions(ctx, tx, uid)
}

// newOncePassword makes a password to be read out or typed: groups of six characters, none of
// which look alike.
func newOncePassword() secret.String {
	random := make([]byte, oncePasswordBytes)
	rand.Read(random) // never fails: crypto/rand ends the process instead
	return secret.New(plainText(random, 6))
}

// plainAlphabet leaves out 1, i, l and o.
var plainAlphabet = base32.NewEncoding("abcdefghjkmnpqrstuvwxyz023456789").
	WithPadding(base32.NoPadding)

// plainText encodes bytes in groups of a few characters.
func plainText(raw []byte, size int) string {
	return groups(plainAlphabet.EncodeToString(raw), size, "-")
}

// groups splits a text into groups of a few bytes.
func groups(text string, size int, between string) string {
	parts := slices.Collect(slices.Chunk([]byte(text), size))
	return string(bytes.Join(parts, []byte(between)))
}
