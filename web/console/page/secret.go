package page

import (
	"github.com/labstack/echo/v4"

	"drawbridge/internal/secret"
)

// Where a new secret waits for the one page that shows it: encrypted, in the session of the
// person who made it.
const (
	onceTable  = "sessions"
	onceColumn = "new_secret"
	onceKey    = "once:"
)

// KeepSecret keeps a new secret of a subject for the next look at it.
func (s *Site) KeepSecret(ctx echo.Context, keys *secret.Keyring, uid string, value secret.String) {
	sealed := keys.Seal([]byte(value.Reveal()), onceTable, onceColumn, onceRow(ctx, uid))
	s.Sessions.Put(ctx.Request().Context(), onceKey+uid, sealed)
}

// TakeSecret returns a secret that was just made, once; empty without one.
func (s *Site) TakeSecret(ctx echo.Context, keys *secret.Keyring, uid string) string {
	sealed := s.Sessions.PopString(ctx.Request().Context(), onceKey+uid)
	if sealed == "" {
		return ""
	}
	plain, err := keys.Open(sealed, onceTable, onceColumn, onceRow(ctx, uid))
	if err != nil {
		return "" // another's, or without its key; rotating makes another secret
	}
	return string(plain)
}

// onceRow binds a new secret to its subject and to who made it.
func onceRow(ctx echo.Context, uid string) string { return uid + "/" + User(ctx).UID.String() }
