package email_test

import (
	"os"
	"testing"

	"drawbridge/internal/email/emailtest"
)

func TestMain(m *testing.M) {
	if encoded := os.Getenv(victimVariable); encoded != "" {
		os.Exit(runVictim(encoded))
	}
	os.Exit(emailtest.Run(m))
}
