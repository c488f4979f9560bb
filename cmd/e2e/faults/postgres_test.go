package faults

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/postgres/pgserver"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/migrations"
)

// proxy is a TCP proxy that has one address for a server that stops and starts, and can
// cut connections.
type proxy struct {
	listener net.Listener
	mu       sync.Mutex
	target   string
	conns    map[*net.TCPConn]bool
	// flow is locked while nothing may pass through.
	flow sync.RWMutex
}

// flowing writes only while the proxy lets data pass.
type flowing struct {
	proxy *proxy
	to    io.Writer
}

// Write waits until the proxy lets data pass.
func (f flowing) Write(content []byte) (int, error) {
	f.proxy.flow.RLock()
	defer f.proxy.flow.RUnlock()
	return f.to.Write(content)
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	return newProxyAt(t, "127.0.0.1:0", target)
}

// newProxyAt is a proxy with an address chosen by the test.
func newProxyAt(t *testing.T, address, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	g := &proxy{listener: listener, target: target, conns: map[*net.TCPConn]bool{}}
	t.Cleanup(func() { _ = listener.Close(); g.cut() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go g.pass(conn.(*net.TCPConn))
		}
	}()
	return g
}

func (g *proxy) point(target string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.target = target
}

// pass forwards one connection in both directions until either side ends it.
func (g *proxy) pass(near *net.TCPConn) {
	defer near.Close()
	g.mu.Lock()
	target := g.target
	g.mu.Unlock()
	dialled, err := net.Dial("tcp", target)
	if err != nil {
		_ = near.SetLinger(0)
		return
	}
	far := dialled.(*net.TCPConn)
	defer far.Close()
	g.mu.Lock()
	g.conns[near] = true
	g.mu.Unlock()
	ended := make(chan struct{}, 2)
	for from, to := range map[*net.TCPConn]*net.TCPConn{near: far, far: near} {
		go func() {
			_, _ = io.Copy(flowing{g, to}, from)
			ended <- struct{}{}
		}()
	}
	<-ended
	g.mu.Lock()
	delete(g.conns, near)
	g.mu.Unlock()
}

// cut resets every connection and returns how many there were.
func (g *proxy) cut() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	for conn := range g.conns {
		_ = conn.SetLinger(0)
		_ = conn.Close()
	}
	return len(g.conns)
}

// ownPostgres is a server that a test may kill. It is as durable as in production (fsync,
// synchronous commits) and keeps one address over all restarts. With -chaos its data is on a
// disk, otherwise in memory, which also survives its processes.
type ownPostgres struct {
	t      *testing.T
	folder string
	server *pgserver.Server
	proxy  *proxy
	// programs is the folder of the server's programs, empty until one was needed.
	programs string
}

// first is the folder of the migrated server, empty if there is none yet.
var first string

// migrated makes the data with which each server begins, from a server that was stopped after the
// migrations. It finds none if servers keep their data elsewhere, being denied the folder.
var migrated = sync.OnceValues(func() (data string, err error) {
	if first, err = newFolder(); err != nil {
		return "", err
	}
	server, err := pgserver.Start(context.Background(), pgserver.Options{Dir: first})
	if err != nil {
		return "", err
	}
	err = errors.Join(migrate(context.Background(), server.URL()), server.Stop())
	return filepath.Join(first, "data"), err
})

// newFolder makes a folder for a server, which runs as a user other than root.
func newFolder() (string, error) {
	parent := ""
	if !*chaos {
		parent = pgtest.Folder()
	}
	folder, err := os.MkdirTemp(parent, "drawbridge-faults-*")
	if err != nil {
		return "", err
	}
	return folder, os.Chmod(folder, 0o755)
}

func migrate(ctx context.Context, address string) error {
	db, err := sql.Open("postgres", address)
	if err != nil {
		return err
	}
	return errors.Join(migrations.Up(ctx, db), db.Close())
}

func newOwnPostgres(t *testing.T) *ownPostgres {
	t.Helper()
	folder, err := newFolder()
	if err != nil {
		t.Fatal(err)
	}
	p := &ownPostgres{t: t, folder: folder}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	data, err := migrated()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(data); err == nil {
		if output, err := exec.Command("cp", "-a", data, folder).CombinedOutput(); err != nil {
			t.Fatalf("copying a server's data: %v: %s", err, output)
		}
	}
	p.start()
	t.Cleanup(func() {
		data := p.server.Folder()
		if err := p.server.Stop(); err != nil {
			t.Errorf("stopping Postgres: %v", err)
		}
		_ = os.RemoveAll(data)
	})
	if err := migrate(t.Context(), p.url()); err != nil {
		t.Fatal(err)
	}
	return p
}

// start starts the server and points the proxy at it.
func (p *ownPostgres) start() {
	p.t.Helper()
	server, err := pgserver.Start(p.t.Context(), pgserver.Options{Dir: p.folder})
	if err != nil {
		p.t.Fatal(err)
	}
	p.server = server
	address, err := url.Parse(server.URL())
	if err != nil {
		p.t.Fatal(err)
	}
	if p.proxy == nil {
		p.proxy = newProxy(p.t, address.Host)
	}
	p.proxy.point(address.Host)
}

// stop ends the server by a signal: SIGINT is a fast stop, SIGQUIT an immediate
// one, after which the next start replays the write-ahead log.
func (p *ownPostgres) stop(signal syscall.Signal) {
	p.t.Helper()
	if err := syscall.Kill(p.process(), signal); err != nil {
		p.t.Fatal(err)
	}
	if err := p.server.Stop(); err != nil {
		p.t.Fatal(err)
	}
}

// url is the URL through the proxy.
func (p *ownPostgres) url() string {
	address, err := url.Parse(p.server.URL())
	if err != nil {
		p.t.Fatal(err)
	}
	address.Host = p.proxy.listener.Addr().String()
	return address.String()
}

// TestReadyzAnswersWhileTheDatabaseHangs: a database that accepts connections and never answers
// must not keep the probe waiting.
func TestReadyzAnswersWhileTheDatabaseHangs(t *testing.T) {
	t.Parallel()
	pg := newOwnPostgres(t)
	s := e2etest.NewOn(t, pg.url()).Serve("--roles", "api")
	pg.proxy.flow.Lock()
	defer pg.proxy.flow.Unlock()
	client := &http.Client{Timeout: 20 * time.Second}
	answer, err := client.Get(s.URL + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("the probe answered %s", answer.Status)
	}
}
