package doctor_test

import (
	"os"
	"testing"

	"drawbridge/internal/email/emailtest"
)

func TestMain(m *testing.M) { os.Exit(emailtest.Run(m)) }
