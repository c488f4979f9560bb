package main

import (
	"os"
	"testing"
	"time"

	"drawbridge/cmd/e2e/e2etest"
)

func TestCertificateFilesAreReadAgain(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	cert, key, first := e2etest.WritePair(t, folder)
	files := &certificateFiles{cert: cert, key: key}
	if err := files.load(); err != nil {
		t.Fatal(err)
	}
	current := func() string {
		pair, err := files.get(nil)
		if err != nil {
			t.Fatal(err)
		}
		return string(pair.Certificate[0])
	}
	if current() != string(first.Certificate[0]) {
		t.Error("another certificate is served")
	}
	_, _, second := e2etest.WritePair(t, folder)
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(cert, later, later); err != nil {
		t.Fatal(err)
	}
	if current() != string(second.Certificate[0]) {
		t.Error("the new certificate is not served")
	}
	if err := os.WriteFile(cert, []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if current() != string(second.Certificate[0]) {
		t.Error("a broken file replaced a good certificate")
	}
}
