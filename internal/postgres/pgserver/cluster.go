//go:build linux

package pgserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// passwordName is a file kept among the data, so that a copy of the data stays usable.
const passwordName = "drawbridge.password"

// major is the version that made the data, 0 without data.
func (h home) major() (int, error) {
	text, err := os.ReadFile(filepath.Join(h.dataDir(), "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		if h.hasData() {
			return 0, fmt.Errorf("%s is not a PostgreSQL data folder (no PG_VERSION): "+
				"remove it, or set DATABASE_URL", h.dataDir())
		}
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading the version of the data: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("reading the version of the data in %s: %w", h.dataDir(), err)
	}
	if major < oldestMajor {
		return 0, fmt.Errorf("the data in %s is of PostgreSQL %d, and %d or later is needed: "+
			"remove the folder, or set DATABASE_URL", h.dataDir(), major, oldestMajor)
	}
	return major, nil
}

func (h home) password() (string, error) {
	text, err := os.ReadFile(filepath.Join(h.dataDir(), passwordName))
	if err != nil {
		return "", fmt.Errorf("reading the server's password: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// initialise makes the cluster unless it exists. It appears by a rename, so an
// interrupted run leaves nothing that looks like data.
func (h home) initialise(ctx context.Context, programs programs, options Options) error {
	if h.hasData() {
		return nil
	}
	draft := h.dataDir() + ".new"
	passwordFile := h.dataDir() + ".password"
	for _, path := range []string{draft, passwordFile} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("removing what an interrupted start left: %w", err)
		}
	}
	if err := os.Mkdir(draft, 0o700); err != nil {
		return fmt.Errorf("creating the data folder: %w", err)
	}
	if err := os.WriteFile(passwordFile, []byte(rand.Text()+"\n"), 0o600); err != nil {
		return fmt.Errorf("writing the server's password: %w", err)
	}
	for _, path := range []string{draft, passwordFile} {
		if err := os.Chown(path, h.account.uid, h.account.gid); err != nil {
			return fmt.Errorf("giving %s to %s: %w", path, h.account, err)
		}
	}
	if err := h.initdb(ctx, programs, draft, passwordFile, options.Volatile); err != nil {
		return err
	}
	if err := os.Rename(passwordFile, filepath.Join(draft, passwordName)); err != nil {
		return fmt.Errorf("keeping the server's password: %w", err)
	}
	if err := os.Rename(draft, h.dataDir()); err != nil {
		return fmt.Errorf("moving the new data into place: %w", err)
	}
	return nil
}

func (h home) initdb(
	ctx context.Context, programs programs, dataDir, passwordFile string, volatile bool,
) error {
	arguments := []string{
		"--pgdata", dataDir, "--username", superuser, "--pwfile", passwordFile,
		"--encoding", "UTF8", "--locale", "C.UTF-8", "--no-instructions",
	}
	if volatile {
		// The password is random and long, and the 4096 iterations of SCRAM take half the time of opening
		// a connection, which tests do by the thousand.
		arguments = append(arguments, "--no-sync", "--auth", "md5")
	} else {
		arguments = append(arguments, "--auth", "scram-sha-256")
	}
	var output bytes.Buffer
	command := h.command(programs.path("initdb"), arguments...)
	command.Stdout = &output
	command.Stderr = &output
	child, err := spawn(command)
	if err != nil {
		return err
	}
	if err := child.wait(ctx); err != nil {
		return fmt.Errorf("running initdb: %w: %s", err, lastLines(output.Bytes()))
	}
	return nil
}

// lastLines returns the end of a program's output, which usually has the reason.
func lastLines(output []byte) string {
	const most = 2000
	if len(output) > most {
		output = output[len(output)-most:]
	}
	return strings.TrimSpace(string(output))
}
