package faults

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"drawbridge/internal/postgres"
	"drawbridge/internal/waittest"
)

// pair is a primary server and a standby that follows it by streaming replication.
type pair struct {
	*ownPostgres

	// standby is the URL of the standby, data its data directory.
	standby, data string
}

func newPair(t *testing.T) *pair {
	t.Helper()
	primary := newOwnPostgres(t)
	return newPairBehind(primary, primary.server.URL())
}

// newPairBehind makes a standby follow the primary through an address, such as a proxy's.
func newPairBehind(primary *ownPostgres, address string) *pair {
	primary.t.Helper()
	p := &pair{ownPostgres: primary, data: primary.copied("--write-recovery-conf")}
	p.standby = p.started(p.data, "--primary_conninfo="+address)
	return p
}

// owner is the user as whom the server runs.
func (p *ownPostgres) owner() *syscall.Stat_t {
	p.t.Helper()
	found, err := os.Stat(filepath.Join(p.server.Folder(), "data"))
	if err != nil {
		p.t.Fatal(err)
	}
	return found.Sys().(*syscall.Stat_t)
}

// tool is the path of one of the server's programs. The first call needs a running server to
// find them.
func (p *ownPostgres) tool(name string) string {
	p.t.Helper()
	if p.programs == "" {
		program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.process()))
		if err != nil {
			p.t.Fatal(err)
		}
		p.programs = filepath.Dir(program)
	}
	return filepath.Join(p.programs, name)
}

// owned makes a folder that belongs to the server's user, with the files that fill puts there.
func (p *ownPostgres) owned(fill func(folder string)) string {
	p.t.Helper()
	folder, err := os.MkdirTemp(p.folder, "owned-*")
	if err != nil {
		p.t.Fatal(err)
	}
	fill(folder)
	user := p.owner()
	err = filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = os.Chown(path, int(user.Uid), int(user.Gid))
		}
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return folder
}

// copied makes a base backup and returns its directory.
func (p *ownPostgres) copied(options ...string) string {
	p.t.Helper()
	return filepath.Join(p.owned(func(folder string) {
		output, err := exec.Command(p.tool("pg_basebackup"), append(options,
			"--dbname", p.server.URL(), "--pgdata", filepath.Join(folder, "data"),
			"--wal-method", "stream", "--checkpoint", "fast")...).CombinedOutput()
		if err != nil {
			p.t.Fatalf("copying the server: %v: %s", err, output)
		}
	}), "data")
}

// started starts a server on a copy, with additional settings, and returns its URL.
func (p *ownPostgres) started(data string, settings ...string) string {
	p.t.Helper()
	address, _ := p.startedBy(func(command *exec.Cmd) *exec.Cmd {
		if os.Geteuid() == 0 {
			user := p.owner()
			command.SysProcAttr = &syscall.SysProcAttr{
				Credential: &syscall.Credential{Uid: user.Uid, Gid: user.Gid},
			}
		}
		return command
	}, data, settings...)
	return address
}

// startedBy is started with another command, which changed makes from the server's.
func (p *ownPostgres) startedBy(
	changed func(*exec.Cmd) *exec.Cmd, data string, settings ...string,
) (string, *exec.Cmd) {
	p.t.Helper()
	address, err := url.Parse(p.server.URL())
	if err != nil {
		p.t.Fatal(err)
	}
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	address.Host = port.Addr().String()
	_ = port.Close() // frees the port for the server
	command := changed(exec.Command(p.tool("postgres"), append([]string{
		"-D", data, "--listen_addresses=127.0.0.1", "--port=" + address.Port(),
		"--unix_socket_directories=", "--max_connections=200", "--jit=off",
	}, settings...)...))
	var said bytes.Buffer
	command.Stderr = &said
	if err := command.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGQUIT) // an immediate stop; it may have already ended
		_ = command.Wait()
		if p.t.Failed() {
			p.t.Logf("the server on the copy said:\n%s", &said)
		}
	})
	return address.String(), command
}

// synchronise makes the primary confirm only commits that the standby has.
func (p *pair) synchronise() {
	p.t.Helper()
	db, err := postgres.Open(p.t.Context(), p.server.URL())
	if err != nil {
		p.t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range []string{
		`ALTER SYSTEM SET synchronous_standby_names = '*'`, `SELECT pg_reload_conf()`,
	} {
		if _, err := db.ExecContext(p.t.Context(), statement); err != nil {
			p.t.Fatal(err)
		}
	}
	waittest.Within(p.t, time.Minute, "the standby is waited for", func() bool {
		var synchronous int
		err := db.GetContext(p.t.Context(), &synchronous,
			`SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'`)
		return err == nil && synchronous == 1
	})
}

// url names both servers, so that the writable one is used.
func (p *pair) url() string {
	primary, _ := url.Parse(p.ownPostgres.url()) // both have been parsed before
	standby, _ := url.Parse(p.standby)
	primary.Host += "," + standby.Host
	return primary.String()
}

// promote makes the standby the primary.
func (p *pair) promote() {
	p.t.Helper()
	db := opened(p.t, p.standby) // it may still be starting
	if _, err := db.ExecContext(p.t.Context(), `SELECT pg_promote()`); err != nil {
		p.t.Fatal(err)
	}
}

// demote shuts the primary down, so that the standby gets everything, and starts it again as a
// standby of the other. It returns the new address of the old primary, to which its previous
// address leads.
func (p *pair) demote() string {
	p.t.Helper()
	p.stop(syscall.SIGINT)
	data := filepath.Join(p.server.Folder(), "data")
	p.signal(data, "standby.signal")
	demoted := p.started(data, "--primary_conninfo="+p.standby)
	address, err := url.Parse(demoted)
	if err != nil {
		p.t.Fatal(err)
	}
	p.proxy.point(address.Host)
	return demoted
}

// signal creates an empty signal file for the server that starts there next.
func (p *ownPostgres) signal(data, name string) {
	p.t.Helper()
	path, user := filepath.Join(data, name), p.owner()
	err := os.WriteFile(path, nil, 0o600)
	if err == nil {
		err = os.Chown(path, int(user.Uid), int(user.Gid))
	}
	if err != nil {
		p.t.Fatal(err)
	}
}
