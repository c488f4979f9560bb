package main

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgserver"
	"drawbridge/migrations"
)

// gate is a TCP proxy with one address for a server that comes and goes, and
// that can cut connections.
type gate struct {
	listener net.Listener
	mu       sync.Mutex
	target   string
	conns    map[*net.TCPConn]bool
	// flow is locked while nothing may pass.
	flow sync.RWMutex
}

// flowing writes while the gate lets pass.
type flowing struct {
	gate *gate
	to   io.Writer
}

// Write waits until the gate lets pass.
func (f flowing) Write(content []byte) (int, error) {
	f.gate.flow.RLock()
	defer f.gate.flow.RUnlock()
	return f.to.Write(content)
}

func newGate(t *testing.T, target string) *gate {
	t.Helper()
	return newGateAt(t, "127.0.0.1:0", target)
}

// newGateAt is a gate with an address that the test chose.
func newGateAt(t *testing.T, address, target string) *gate {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{listener: listener, target: target, conns: map[*net.TCPConn]bool{}}
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

func (g *gate) point(target string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.target = target
}

// pass carries one connection in both directions until either side ends it.
func (g *gate) pass(near *net.TCPConn) {
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

// cut resets every connection and returns how many.
func (g *gate) cut() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	for conn := range g.conns {
		_ = conn.SetLinger(0)
		_ = conn.Close()
	}
	return len(g.conns)
}

// ownPostgres is a server that a test may kill. It keeps its promises as in
// production (fsync, synchronous commits) and has one address for all its lives.
type ownPostgres struct {
	t      *testing.T
	folder string
	server *pgserver.Server
	gate   *gate
}

func newOwnPostgres(t *testing.T) *ownPostgres {
	t.Helper()
	folder, err := os.MkdirTemp("", "drawbridge-faults-*")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o755); err != nil { // the server runs as another user than root
		t.Fatal(err)
	}
	p := &ownPostgres{t: t, folder: folder}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	p.start()
	t.Cleanup(func() {
		data := p.server.Folder()
		if err := p.server.Stop(); err != nil {
			t.Errorf("stopping Postgres: %v", err)
		}
		_ = os.RemoveAll(data)
	})
	db, err := postgres.Open(t.Context(), p.url())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := migrations.Up(t.Context(), db.DB.DB); err != nil {
		t.Fatal(err)
	}
	return p
}

// start starts the server and points the gate at it.
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
	if p.gate == nil {
		p.gate = newGate(p.t, address.Host)
	}
	p.gate.point(address.Host)
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

// url leads through the gate.
func (p *ownPostgres) url() string {
	address, err := url.Parse(p.server.URL())
	if err != nil {
		p.t.Fatal(err)
	}
	address.Host = p.gate.listener.Addr().String()
	return address.String()
}

// TestReadyzAnswersWhileTheDatabaseHangs: a database that takes connections and
// says nothing must not keep the probe waiting.
func TestReadyzAnswersWhileTheDatabaseHangs(t *testing.T) {
	t.Parallel()
	pg := newOwnPostgres(t)
	s := newWorldOn(t, pg.url()).serve("--roles", "api")
	pg.gate.flow.Lock()
	defer pg.gate.flow.Unlock()
	client := &http.Client{Timeout: 20 * time.Second}
	answer, err := client.Get(s.url + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("the probe answered %s", answer.Status)
	}
}
