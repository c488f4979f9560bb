package email_test

import (
	"os"
	"testing"

	"drawbridge/internal/email/emailtest"
)

func TestMain(m *testing.M) {
	if told := os.Getenv(victimVariable); told != "" {
		os.Exit(runVictim(told))
	}
	os.Exit(emailtest.Run(m))
}
