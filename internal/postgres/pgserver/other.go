//go:build !linux

package pgserver

import (
	"context"
	"errors"
)

// Start works on Linux only.
func Start(context.Context, Options) (*Server, error) {
	return nil, errors.New("the built-in Postgres runs on Linux only: set DATABASE_URL")
}

// StartTemporary works on Linux only.
func StartTemporary(context.Context, Options) (*Server, error) {
	return nil, errors.New("the built-in Postgres runs on Linux only: " +
		"set DRAWBRIDGE_TEST_DATABASE_URL")
}

// Attach works on Linux only.
func Attach(string) (string, bool) { return "", false }
