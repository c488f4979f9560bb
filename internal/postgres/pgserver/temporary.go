//go:build linux

package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// temporaryPattern names the folders of throw-away servers.
const temporaryPattern = "drawbridge-pg-*"

// StartTemporary runs a volatile server in a folder of its own, which Stop removes. Options.Dir is
// the parent of that folder, by default os.TempDir. It first removes what killed processes left
// there.
func StartTemporary(ctx context.Context, options Options) (*Server, error) {
	if options.Dir == "" {
		options.Dir = os.TempDir()
	}
	if err := sweep(ctx, options.Dir); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(options.Dir, temporaryPattern)
	if err != nil {
		return nil, fmt.Errorf("creating a folder for Postgres: %w", err)
	}
	// MkdirTemp closes the folder to the user that the server runs as.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, errors.Join(fmt.Errorf("opening %s: %w", dir, err), os.RemoveAll(dir))
	}
	options.Dir = dir
	options.Volatile = true
	server, err := Start(ctx, options)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	shutDown, folder := server.stop, server.folder
	server.stop = func() error {
		return errors.Join(shutDown(), os.RemoveAll(folder), os.RemoveAll(dir))
	}
	return server, nil
}

// sweep removes the folders of temporary servers whose process is gone, which shows by their lock
// being free.
func sweep(ctx context.Context, parent string) error {
	// Glob only fails for a malformed pattern, which parent could make.
	dirs, err := filepath.Glob(filepath.Join(parent, temporaryPattern))
	if err != nil {
		return fmt.Errorf("looking for left-over servers: %w", err)
	}
	for _, dir := range dirs {
		// A young folder may belong to a process that is just about to lock it.
		info, err := os.Stat(filepath.Join(dir, lockName))
		if err != nil || time.Since(info.ModTime()) < time.Minute {
			continue
		}
		lock, err := lockFolder(dir)
		if err != nil {
			continue // in use, or another user's
		}
		if err := errors.Join(discard(ctx, dir), lock.Close()); err != nil {
			return fmt.Errorf("removing the left-over server in %s: %w", dir, err)
		}
	}
	return nil
}

// discard stops what runs in the folder and removes its data, here or outside.
func discard(ctx context.Context, dir string) error {
	folders := []string{outsideFolder(dir), dir}
	for _, folder := range folders {
		if err := (home{folder: folder}).evict(ctx); err != nil {
			return err
		}
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
	}
	return nil
}
