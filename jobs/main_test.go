package jobs_test

import (
	"log/slog"
	"os"
	"testing"

	"drawbridge/internal/email/emailtest"
)

func TestMain(m *testing.M) {
	// A log line for each of thousands of attempts would bury the failures.
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(emailtest.Run(m))
}
