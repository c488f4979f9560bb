package faults

import (
	"os"
	"testing"

	"drawbridge/cmd/e2e/e2etest"
)

func TestMain(m *testing.M) {
	status := e2etest.Main(m, 4)
	_ = os.RemoveAll(first) // leftovers do not affect the next run
	os.Exit(status)
}
