// Package operator keeps the people of the console: their roles, passwords and
// second factors, the limits on wrong ones, their sessions, who they are at an
// OpenID Connect provider, and the log of what they did.
package operator

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
)

// Role says what a user may do. Each may do all that the one before it may.
type Role string

// The roles.
const (
	RoleSupport  Role = "support"
	RoleOperator Role = "operator"
	RoleAdmin    Role = "admin"
)

// Roles lists the roles from the least to the most powerful.
func Roles() []Role { return []Role{RoleSupport, RoleOperator, RoleAdmin} }

// Allows tells whether a user of this role may do what needs the other one.
// An unknown role is allowed nothing and allows nobody.
func (r Role) Allows(needed Role) bool {
	have, need := slices.Index(Roles(), r), slices.Index(Roles(), needed)
	return have >= 0 && need >= 0 && have >= need
}

// User is a person who may sign in.
type User struct {
	UID   uuid.UUID `db:"user_uid"`
	Email string    `db:"email"`
	Name  string    `db:"name"`
	Role  Role      `db:"role"`
	// MustChangePassword tells that somebody else knows the password: the
	// console shows nothing but the form for another one.
	MustChangePassword bool `db:"must_change_password"`
	// PasswordExpiresAt is when a one-time password stops to work; nil for one
	// that the user chose.
	PasswordExpiresAt *time.Time `db:"password_expires_at"`
	PasswordChangedAt *time.Time `db:"password_changed_at"`
	// SecondFactor tells that a code is asked for after the password, and
	// SecondFactorNeeded that the user's role must have one.
	SecondFactor       bool `db:"second_factor"`
	SecondFactorNeeded bool `db:"second_factor_needed"`
	// Provided tells that the user has signed in through the provider.
	Provided     bool       `db:"provided"`
	DisabledAt   *time.Time `db:"disabled_at"`
	LastSignInAt *time.Time `db:"last_sign_in_at"`
	CreatedAt    time.Time  `db:"created_at"`
	// Credential changes with the password and reveals nothing of it. A session
	// that carries another one has ended.
	Credential string `db:"credential"`
}

// Lacks tells whether the user must set up a second factor before anything else.
func (u User) Lacks() bool { return u.SecondFactorNeeded && !u.SecondFactor }

// Recorded is how the audit log writes a user.
func (u User) Recorded() map[string]any {
	return map[string]any{
		"name": u.Name, "role": u.Role, "disabled": u.DisabledAt != nil,
		"second_factor": u.SecondFactor, "must_change_password": u.MustChangePassword,
	}
}

// Service serves the console's users.
type Service struct {
	DB *postgres.DB
	// Keys seal the secrets of second factors; without them there are none.
	Keys *secret.Keyring
	// Passwords hashes the passwords; nil for the process's own parameters and bounds.
	Passwords *Hasher
}

// NewUser is what Create needs.
type NewUser struct {
	Email    string
	Name     string
	Role     Role
	Password string
	// Demo marks a published password, which may be short.
	Demo bool
	// MustChange forces another password at the first sign-in.
	MustChange bool
}
