package operator

import (
	"context"
	"fmt"
	"net/mail"
	"slices"
	"strings"

	"github.com/alexedwards/argon2id"
	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

const userColumns = `
	user_uid,
	email,
	name,
	role,
	demo_password,
	disabled_at,
	last_sign_in_at,
	created_at,
	md5(password_hash) AS credential`

// hashParams are the second recommended option of RFC 9106 with fewer threads:
// 64 MiB and about a tenth of a second, paid only by people who sign in.
var hashParams = &argon2id.Params{
	Memory: 64 * 1024, Iterations: 1, Parallelism: 2, SaltLength: 16, KeyLength: 32,
}

// Create adds a user. Errors: VALIDATION_ERROR naming every wrong field, among
// them an address that is taken.
func (s *Service) Create(ctx context.Context, tx *postgres.Tx, request NewUser) (User, error) {
	var faults lending.Faults
	email := normalEmail(request.Email)
	if parsed, err := mail.ParseAddress(email); err != nil || parsed.Address != email {
		faults.Add("email", `"email" must be an address such as ada@lender.example`)
	}
	name := faults.Text("name", request.Name, 200)
	if !slices.Contains(Roles(), request.Role) {
		faults.Add("role", `"role" must be admin, operator or support`)
	}
	if !request.Demo {
		checkPassword(&faults, request.Password)
	}
	if err := faults.Err(); err != nil {
		return User{}, err
	}
	hash, err := argon2id.CreateHash(request.Password, hashParams)
	if err != nil {
		return User{}, fmt.Errorf("hashing a password: %w", err)
	}
	user := User{
		UID: postgres.NewUID(tx.Now), Email: email, Name: name, Role: request.Role,
		DemoPassword: request.Demo, CreatedAt: tx.Now,
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO users (user_uid, email, name, role, password_hash, demo_password, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		user.UID, user.Email, user.Name, string(user.Role), hash, request.Demo, tx.Now)
	if postgres.IsUnique(err, "users_email") {
		return User{}, lending.Invalid("email", `"email" %s belongs to another user`, email)
	}
	if err != nil {
		return User{}, fmt.Errorf("inserting user %s: %w", email, err)
	}
	return user, nil
}

// Users lists every user by address: people whom somebody invited, so there
// are no pages.
func (s *Service) Users(ctx context.Context) ([]User, error) {
	var users []User
	err := s.DB.SelectContext(ctx, &users,
		`SELECT `+userColumns+` FROM users ORDER BY lower(email)`)
	if err != nil {
		return nil, fmt.Errorf("listing users: %w", err)
	}
	return users, nil
}

// User returns one user. Error: NOT_FOUND.
func (s *Service) User(ctx context.Context, uid uuid.UUID) (User, error) {
	var user User
	err := s.DB.GetContext(ctx, &user,
		`SELECT `+userColumns+` FROM users WHERE user_uid = $1`, uid)
	if postgres.IsNoRows(err) {
		return User{}, lending.NewError(lending.CodeNotFound, "no user has the id %s", uid)
	}
	if err != nil {
		return User{}, fmt.Errorf("loading user %s: %w", uid, err)
	}
	return user, nil
}

// Disable ends a user's access; sessions end with their next request. It
// returns the user. Error: NOT_FOUND.
func (s *Service) Disable(ctx context.Context, tx *postgres.Tx, email string) (User, error) {
	return update(ctx, tx, email, `disabled_at = coalesce(disabled_at, $2)`, tx.Now)
}

// SetPassword replaces a user's password and returns the user. Errors:
// VALIDATION_ERROR, NOT_FOUND.
func (s *Service) SetPassword(
	ctx context.Context, tx *postgres.Tx, email, password string,
) (User, error) {
	var faults lending.Faults
	checkPassword(&faults, password)
	if err := faults.Err(); err != nil {
		return User{}, err
	}
	hash, err := argon2id.CreateHash(password, hashParams)
	if err != nil {
		return User{}, fmt.Errorf("hashing a password: %w", err)
	}
	return update(ctx, tx, email, `password_hash = $2, demo_password = false`, hash)
}

func update(
	ctx context.Context, tx *postgres.Tx, email, assignment string, value any,
) (User, error) {
	var user User
	err := tx.GetContext(ctx, &user, `UPDATE users SET `+assignment+`
		WHERE lower(email) = $1 RETURNING `+userColumns, normalEmail(email), value)
	if postgres.IsNoRows(err) {
		return User{}, lending.NewError(lending.CodeNotFound, "no user has the address %s", email)
	}
	if err != nil {
		return User{}, fmt.Errorf("changing user %s: %w", email, err)
	}
	return user, nil
}

// HasDemoPasswords tells whether anybody could sign in with a published
// password.
func (s *Service) HasDemoPasswords(ctx context.Context) (bool, error) {
	var found bool
	err := s.DB.GetContext(ctx, &found,
		`SELECT EXISTS (SELECT 1 FROM users WHERE demo_password AND disabled_at IS NULL)`)
	if err != nil {
		return false, fmt.Errorf("looking for demo passwords: %w", err)
	}
	return found, nil
}

func normalEmail(email string) string { return strings.ToLower(strings.TrimSpace(email)) }
