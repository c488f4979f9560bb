// Package operator keeps the console users: their roles, passwords and second factors, the
// limits on wrong ones, their sessions, their identities at an OpenID Connect provider, and the
// log of their actions.
package operator

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
)

// Role says what a user may do. Each role includes what the one before it may do.
type Role string

// The roles.
const (
	RoleSupport  Role = "support"
	RoleOperator Role = "operator"
	RoleAdmin    Role = "admin"
)

// Roles lists the roles from the least to the most powerful.
func Roles() []Role { return []Role{RoleSupport, RoleOperator, RoleAdmin} }

// Allows reports whether a user of this role may do what requires the needed role. An unknown
// role allows nothing, and if it is required, no role satisfies it.
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
	// MustChangePassword means that somebody else knows the password: the console shows only the
	// form for choosing another one.
	MustChangePassword bool `db:"must_change_password"`
	// PasswordExpiresAt is when a one-time password stops working; nil for a password that the user
	// chose.
	PasswordExpiresAt *time.Time `db:"password_expires_at"`
	PasswordChangedAt *time.Time `db:"password_changed_at"`
	// SecondFactor means that a code is required after the password, SecondFactorNeeded that the
	// user's role must have one.
	SecondFactor       bool `db:"second_factor"`
	SecondFactorNeeded bool `db:"second_factor_needed"`
	// Provided means that the user has signed in through the provider.
	Provided     bool       `db:"provided"`
	DisabledAt   *time.Time `db:"disabled_at"`
	LastSignInAt *time.Time `db:"last_sign_in_at"`
	CreatedAt    time.Time  `db:"created_at"`
	// Credential changes with the password and reveals nothing of it. A session that carries a
	// different one has ended.
	Credential string `db:"credential"`
}

// LacksSecondFactor reports whether the user must set up a second factor before anything else.
func (u User) LacksSecondFactor() bool { return u.SecondFactorNeeded && !u.SecondFactor }

// Recorded returns the user as the audit log records it.
func (u User) Recorded() map[string]any {
	return map[string]any{
		"name": u.Name, "role": u.Role, "disabled": u.DisabledAt != nil,
		"second_factor": u.SecondFactor, "must_change_password": u.MustChangePassword,
	}
}

// Service serves the console's users.
type Service struct {
	DB *postgres.DB
	// Keys seal the secrets of second factors; without keys there are no second factors.
	Keys *secret.Keyring
	// Passwords hashes the passwords; nil means the process's default hasher.
	Passwords *Hasher
}

// NewUser is the input of Create.
type NewUser struct {
	Email    string
	Name     string
	Role     Role
	Password string
	// Demo marks a published password, which is exempt from the password rules.
	Demo bool
	// MustChange requires another password at the first sign-in.
	MustChange bool
}
