//go:build linux

package pgserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	_ "github.com/lib/pq" // the driver of createDatabase
)

const (
	// superuser is the one role of the server, and the name of its database.
	superuser = "drawbridge"
	// startLimit bounds the wait for a server that replays its write-ahead log.
	startLimit = time.Minute
	// portTries is how often a start picks another port after losing the race for one.
	portTries = 5
)

// Start runs a server on the data in options.Dir and returns once it takes
// connections, about a second later the first time. ctx bounds the start, not
// the server's life: Stop ends that, or the end of this process.
func Start(ctx context.Context, options Options) (*Server, error) {
	if options.Dir == "" {
		return nil, errors.New("starting Postgres: Options.Dir is empty")
	}
	dir, err := prepareDir(options.Dir)
	if err != nil {
		return nil, err
	}
	lock, err := lockFolder(dir)
	if err != nil {
		return nil, err
	}
	server, err := start(ctx, dir, options)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting Postgres in %s: %w", dir, err), lock.Close())
	}
	shutDown := server.stop
	held.Store(lock, true)
	server.stop = func() error {
		held.Delete(lock)
		return errors.Join(shutDown(), lock.Close())
	}
	return server, nil
}

// held has the locks of the running servers. The garbage collector closes files that are no longer
// referenced, so a Server whose owner dropped it would lose its lock, and the next sweep would
// treat its folder as left over.
var held sync.Map

// prepareDir creates the folder and returns its canonical path, so that two names of the same
// folder are one server.
func prepareDir(dir string) (string, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("resolving %s: %w", dir, err)
	}
	if err := os.MkdirAll(absolute, 0o755); err != nil {
		return "", fmt.Errorf("creating the Postgres folder: %w", err)
	}
	resolved, err := filepath.EvalSymlinks(absolute)
	if err != nil {
		return "", fmt.Errorf("resolving %s: %w", absolute, err)
	}
	return resolved, nil
}

func start(ctx context.Context, dir string, options Options) (*Server, error) {
	home, err := settle(ctx, dir, options)
	if err != nil {
		return nil, err
	}
	programs, err := findPrograms(ctx, home)
	if err != nil {
		return nil, err
	}
	if err := home.initialise(ctx, programs, options); err != nil {
		return nil, err
	}
	return home.run(ctx, programs, options)
}

// run starts the server on a free port. If another process takes that port before the server
// listens on it, run tries another.
func (h home) run(ctx context.Context, programs programs, options Options) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	password, err := h.password()
	if err != nil {
		return nil, err
	}
	for range portTries {
		port, portErr := freePort()
		if portErr != nil {
			return nil, portErr
		}
		child, launchErr := h.launch(ctx, programs, port, options)
		if launchErr == nil {
			stop := func() error { return child.stop(options.Volatile) }
			if err := createDatabase(ctx, serverURL(password, port, "postgres")); err != nil {
				return nil, errors.Join(err, stop())
			}
			return &Server{url: serverURL(password, port, superuser), folder: h.folder, stop: stop}, nil
		}
		if err = launchErr; !errors.Is(err, errPortTaken) {
			break
		}
	}
	return nil, err
}

func serverURL(password string, port int, database string) string {
	address := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, password),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return address.String()
}

func freePort() (int, error) {
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return 0, fmt.Errorf("finding a free port: %w", err)
	}
	defer func() { _ = listener.Close() }() // nothing was sent on it
	address, err := netip.ParseAddrPort(listener.Addr().String())
	return int(address.Port()), err
}

// createDatabase makes our database on the first start, and checks on every start that the server
// accepts our password.
func createDatabase(ctx context.Context, maintenanceURL string) error {
	db, err := sql.Open("postgres", maintenanceURL)
	if err != nil {
		return fmt.Errorf("connecting to the new server: %w", err)
	}
	defer func() { _ = db.Close() }() // its work is done or its error returned
	var exists bool
	const query = `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`
	if err := db.QueryRowContext(ctx, query, superuser).Scan(&exists); err != nil {
		return fmt.Errorf("looking for database %s: %w", superuser, err)
	}
	if exists {
		return nil
	}
	if _, err := db.ExecContext(ctx, `CREATE DATABASE `+superuser); err != nil {
		return fmt.Errorf("creating database %s: %w", superuser, err)
	}
	return nil
}
