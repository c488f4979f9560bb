package faults

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

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgserver"
	"drawbridge/migrations"
)

// proxy is a TCP proxy with one address for a server that comes and goes, and
// that can cut connections.
type proxy struct {
	listener net.Listener
	mu       sync.Mutex
	target   string
	conns    map[*net.TCPConn]bool
	// flow is locked while nothing may pass.
	flow sync.RWMutex
}

// flowing writes while the proxy lets pass.
type flowing struct {
	proxy *proxy
	to    io.Writer
}

// Write waits until the proxy lets pass.
func (f flowing) Write(content []byte) (int, error) {
	f.proxy.flow.RLock()
	defer f.proxy.flow.RUnlock()
	return f.to.Write(content)
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	return newProxyAt(t, "127.0.0.1:0", target)
}

// newProxyAt is a proxy with an address that the test chose.
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

// pass carries one connection in both directions until either side ends it.
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

// cut resets every connection and returns how many.
func (g *proxy) cut() int {
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
	proxy  *proxy
	// programs is the folder of the server's, empty until one was asked for.
	programs string
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

// url leads through the proxy.
func (p *ownPostgres) url() string {
	address, err := url.Parse(p.server.URL())
	if err != nil {
		p.t.Fatal(err)
	}
	address.Host = p.proxy.listener.Addr().String()
	return address.String()
}

// TestReadyzAnswersWhileTheDatabaseHangs: a database that takes connections and
// says nothing must not keep the probe waiting.
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
