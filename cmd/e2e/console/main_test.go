package console

import (
	"os"
	"testing"

	"drawbridge/cmd/e2e/e2etest"
)

func TestMain(m *testing.M) {
	status := e2etest.Main(m, 3)
	closeChromium()
	os.Exit(status)
}
