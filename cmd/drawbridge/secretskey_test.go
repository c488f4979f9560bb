package main

import (
	"errors"
	"os"
	"sync"
	"testing"

	"drawbridge/internal/app"
	"drawbridge/internal/config"
)

// TestFirstStartsAtOnceShareTheSecretsKey: no process reads the file before the key is in it.
//
//nolint:paralleltest // the folder is the whole process's
func TestFirstStartsAtOnceShareTheSecretsKey(t *testing.T) {
	t.Chdir(t.TempDir())
	for range 20 {
		errs := make([]error, 16)
		var starts sync.WaitGroup
		for i := range errs {
			starts.Go(func() { _, errs[i] = keyring(config.Config{}) })
		}
		starts.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if files, err := os.ReadDir(app.DataDir); err != nil || len(files) != 1 {
			t.Fatalf("the folder holds %v, %v", files, err)
		}
		if err := os.RemoveAll(app.DataDir); err != nil {
			t.Fatal(err)
		}
	}
}
