package operator

import (
	"context"
	"fmt"
	"net/mail"
	"slices"
	"strings"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// maxUserName is the maximum length of a user's name, in characters.
const maxUserName = 200

const userColumns = `
	users.user_uid,
	email,
	name,
	role,
	must_change_password,
	password_expires_at,
	password_changed_at,
	provider_subject IS NOT NULL AS provided,
	EXISTS (SELECT 1 FROM second_factors f
	         WHERE f.user_uid = users.user_uid AND f.confirmed_at IS NOT NULL) AS second_factor,
	EXISTS (SELECT 1 FROM sign_in_settings
	         WHERE users.role = ANY (second_factor_roles)) AS second_factor_needed,
	disabled_at,
	last_sign_in_at,
	created_at,
	coalesce(users.credential, md5(password_hash)) AS credential`

// Create adds a user. Errors: VALIDATION_ERROR naming every wrong field, including an address
// that is taken.
func (s *Service) Create(ctx context.Context, tx *postgres.Tx, request NewUser) (User, error) {
	var errs lending.FieldErrors
	email := normalEmail(request.Email)
	parsed, err := mail.ParseAddress(email)
	if err != nil || parsed.Address != email || len(email) > maxEmail {
		errs.Add("email", `"email" must be an address such as ada@lender.example`)
	}
	name := errs.Name("name", request.Name, maxUserName)
	if !slices.Contains(Roles(), request.Role) {
		errs.Add("role", `"role" must be admin, operator or support`)
	}
	if !request.Demo {
		checkPassword(&errs, request.Password, email, name)
	}
	if err := errs.Err(); err != nil {
		return User{}, err
	}
	hash, err := s.hasher().hash(ctx, request.Password)
	if err != nil {
		return User{}, err
	}
	user := User{
		UID: postgres.NewUID(tx.Now), Email: email, Name: name, Role: request.Role,
		MustChangePassword: request.MustChange, CreatedAt: tx.Now,
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO users (user_uid, email, name, role, password_hash, demo_password,
		                   must_change_password, password_changed_at, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)`,
		user.UID, user.Email, user.Name, string(user.Role), hash, request.Demo,
		request.MustChange, tx.Now)
	if postgres.IsUnique(err, "users_email") {
		return User{}, lending.Taken("email", `"email" %s belongs to another user`, email)
	}
	if err != nil {
		return User{}, fmt.Errorf("inserting user %s: %w", email, err)
	}
	return user, nil
}

// User returns one user. Error: NOT_FOUND.
func (s *Service) User(ctx context.Context, uid uuid.UUID) (User, error) {
	var user User
	err := s.DB.GetContext(ctx, &user,
		`SELECT `+userColumns+` FROM users WHERE user_uid = $1`, uid)
	return user, postgres.RowError(err,
		lending.NewError(lending.CodeNotFound, "no user has the id %s", uid),
		"loading user %s", uid)
}

// HasDemoPasswords reports whether anybody could sign in with a published password.
func (s *Service) HasDemoPasswords(ctx context.Context) (bool, error) {
	var found bool
	err := s.DB.GetContext(ctx, &found,
		`SELECT EXISTS (SELECT 1 FROM users WHERE demo_password AND disabled_at IS NULL)`)
	if err != nil {
		return false, fmt.Errorf("looking for demo passwords: %w", err)
	}
	return found, nil
}

// LockUser locks and returns the user with an address. Error: NOT_FOUND.
func LockUser(ctx context.Context, tx *postgres.Tx, email string) (User, error) {
	return lock(ctx, tx, `lower(email) = $1`, normalEmail(email))
}

// lock returns the one user that meets a condition, and locks it against changes.
func lock(ctx context.Context, tx *postgres.Tx, condition string, value any) (User, error) {
	var user User
	err := tx.GetContext(ctx, &user,
		`SELECT `+userColumns+` FROM users WHERE `+condition+` FOR UPDATE`, value)
	return user, postgres.RowError(err,
		lending.NewError(lending.CodeNotFound, "no user is known as %v", value),
		"loading user %v", value)
}

func normalEmail(email string) string { return strings.ToLower(strings.TrimSpace(email)) }
