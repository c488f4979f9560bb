package web_test

import (
	"log/slog"
	"os"
	"testing"
)

// TestMain silences the request log, which would bury test failures.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}
