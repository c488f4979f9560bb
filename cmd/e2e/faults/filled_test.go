package faults

import (
	"os"
	"strings"
	"testing"
)

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	block := []byte(strings.Repeat("x", 4096))
	for range 100_000 {
		if _, err := file.Write(block); err != nil {
			return
		}
	}
	t.Fatalf("%s never got full", path)
}
