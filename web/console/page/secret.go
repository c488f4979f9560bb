package page

import (
	"github.com/labstack/echo/v4"

	"drawbridge/internal/secret"
)

// A new secret is stored, encrypted, in the session of the user who made it until the one
// page that shows it is rendered.
const (
	onceTable  = "sessions"
	onceColumn = "new_secret"
	onceKey    = "once:"
)

// KeepSecret stores a new secret of a subject until TakeSecret.
func (s *Site) KeepSecret(ctx echo.Context, keys *secret.Keyring, uid string, value secret.String) {
	sealed := keys.Seal([]byte(value.Reveal()), onceTable, onceColumn, onceRow(ctx, uid))
	s.Sessions.Put(ctx.Request().Context(), onceKey+uid, sealed)
}

// TakeSecret returns a new secret once and removes it; empty if there is none.
func (s *Site) TakeSecret(ctx echo.Context, keys *secret.Keyring, uid string) string {
	sealed := s.Sessions.PopString(ctx.Request().Context(), onceKey+uid)
	if sealed == "" {
		return ""
	}
	plain, err := keys.Open(sealed, onceTable, onceColumn, onceRow(ctx, uid))
	if err != nil {
		return "" // another user's, or the key is missing; rotating makes a new secret
	}
	return string(plain)
}

// onceRow binds a new secret to its subject and to the user who made it.
func onceRow(ctx echo.Context, uid string) string { return uid + "/" + User(ctx).UID.String() }
