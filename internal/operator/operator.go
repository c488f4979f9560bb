// Package operator keeps the people of the console: their roles, their
// passwords, the limits on wrong ones, and the log of what they did.
package operator

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
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
	// DemoPassword tells that the password is the published one of the demo
	// data, which production refuses.
	DemoPassword bool       `db:"demo_password"`
	DisabledAt   *time.Time `db:"disabled_at"`
	LastSignInAt *time.Time `db:"last_sign_in_at"`
	CreatedAt    time.Time  `db:"created_at"`
	// Credential changes with the password and reveals nothing of it. A session
	// that carries another one has ended.
	Credential string `db:"credential"`
}

// Service serves the console's users.
type Service struct {
	DB *postgres.DB
}

// NewUser is what Create needs.
type NewUser struct {
	Email    string
	Name     string
	Role     Role
	Password string
	// Demo marks a published password, which may be short.
	Demo bool
}

// The bounds of a password, in characters. The upper one keeps the hash from
// being a way to burn our time.
const (
	minPassword = 12
	maxPassword = 200
)

func checkPassword(faults *lending.Faults, password string) {
	count := len([]rune(password))
	if count < minPassword || count > maxPassword {
		faults.Add("password", `"password" must have %d to %d characters`, minPassword, maxPassword)
	}
}
