package faults

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
	"drawbridge/views/paths"
)

const (
	// shortPatience is the DRAWBRIDGE_DATABASE_TIMEOUT of these tests.
	shortPatience = "2s"
	// inTime is how long a response may take, on a machine with other work.
	inTime = 10 * time.Second
)

// process is the id of the server's main process.
func (p *ownPostgres) process() int {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.server.Folder(), "data", "postmaster.pid"))
	if err != nil {
		p.t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		p.t.Fatal(err)
	}
	return pid
}

// freeze stops the server and all its processes until the returned function is called.
func (p *ownPostgres) freeze() func() {
	p.t.Helper()
	first := p.process()
	all := []int{first}
	signal := func(signal syscall.Signal, pids []int) {
		for _, pid := range pids {
			_ = syscall.Kill(pid, signal) // it may have ended
		}
	}
	signal(syscall.SIGSTOP, all) // the stopped server starts no others
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", first, first))
	if err != nil {
		p.t.Fatal(err)
	}
	for field := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			p.t.Fatal(err)
		}
		all = append(all, pid)
	}
	signal(syscall.SIGSTOP, all)
	resume := sync.OnceFunc(func() { signal(syscall.SIGCONT, all) })
	p.t.Cleanup(resume)
	return resume
}

// silence lets nothing pass through the proxy until the returned function is called.
func (p *ownPostgres) silence() func() {
	p.proxy.flow.Lock()
	resume := sync.OnceFunc(p.proxy.flow.Unlock)
	p.t.Cleanup(resume)
	return resume
}

// bare is the URL without its TLS parameters.
func bare(t *testing.T, databaseURL string) string {
	t.Helper()
	address, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	query := address.Query()
	query.Del("sslmode")
	address.RawQuery = query.Encode()
	return address.String()
}

// question is a request whose response needs the database.
type question struct {
	name, method, path string
	// form is a form sent by a user; without one the request is from a partner's client.
	form   url.Values
	person bool
	// status and says are the expected response while the database hangs.
	status int
	says   string
}

// asker makes requests as the demo's first client and as its admin.
type asker struct {
	t       *testing.T
	data    e2etest.Demo
	visitor *visitor
}

// reply is the response to a question.
type reply struct {
	status int
	header http.Header
	body   string
}

func (a *asker) ask(q question) (reply, error) {
	request, err := http.NewRequestWithContext(a.t.Context(), q.method, a.visitor.base+q.path,
		strings.NewReader(q.form.Encode()))
	if err != nil {
		return reply{}, err
	}
	client := http.Client{Timeout: 3 * inTime}
	if q.person {
		client.Jar = a.visitor.client.Jar
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	} else {
		request.Header.Set("x-service-client-id", a.data.Partners[0].Clients[0].ID)
		request.Header.Set("x-service-client-secret", a.data.Partners[0].Clients[0].Secret)
	}
	answer, err := client.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return reply{answer.StatusCode, answer.Header, string(body)}, err
}

// refused makes a request and checks the response during a hung database.
func (a *asker) refused(q question) {
	began := time.Now()
	got, err := a.ask(q)
	took := time.Since(began)
	if err != nil || got.status != q.status || !strings.Contains(got.body, q.says) || took > inTime {
		a.t.Errorf("%s: after %s %d (%v), want %d that says %q: %.300s",
			q.name, took, got.status, err, q.status, q.says, got.body)
	}
	if got.status == http.StatusServiceUnavailable && got.header.Get("Retry-After") == "" {
		a.t.Errorf("%s: 503 without Retry-After", q.name)
	}
}

// loanPath is the API path of a demo loan.
func (a *asker) loanPath() string { return "/api/v2/loan/" + a.data.Loans[0].UID.String() }

func (a *asker) questions() []question {
	const away = http.StatusServiceUnavailable
	return []question{
		{"loan", "GET", a.loanPath(), nil, false, away, `"UNAVAILABLE"`},
		{"draw", "POST", a.loanPath() + "/request-draw", nil, false, away, `"UNAVAILABLE"`},
		{"overview", "GET", paths.Home, nil, true, away, "The database does not answer"},
		{"deliveries", "GET", paths.Deliveries, nil, true, away, "The database does not answer"},
		{
			"sign-in", "POST", paths.SignIn,
			url.Values{"email": {e2etest.DemoOperator}, "password": {e2etest.DemoPassword}},
			true,
			away, "The database does not answer",
		},
		{"readiness", "GET", "/readyz", nil, false, away, "the database does not answer"},
		{"metrics", "GET", "/metrics", nil, false, http.StatusOK, "drawbridge_database_up 0"},
		{"health", "GET", "/healthz", nil, false, http.StatusOK, "ok"},
	}
}

// allRefused makes every request by several callers at once, together more than there are
// connections.
func (a *asker) allRefused() {
	var asking sync.WaitGroup
	for _, q := range a.questions() {
		for range callers {
			asking.Go(func() { a.refused(q) })
		}
	}
	asking.Wait()
}

// TestHungDatabase makes all requests at once while the server is frozen, or while the
// proxy lets nothing through to it.
func TestHungDatabase(t *testing.T) {
	t.Parallel()
	cases := map[string]func(p *ownPostgres) func(){
		"a frozen server":  (*ownPostgres).freeze,
		"a silent network": (*ownPostgres).silence,
	}
	for name, hang := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pg := newOwnPostgres(t)
			w := e2etest.NewOn(t, pg.url())
			w.Env["DRAWBRIDGE_DATABASE_TIMEOUT"] = shortPatience
			data := w.DemoData()
			s := w.Serve()
			a := &asker{t, data, visit(t, s.URL)}
			waittest.Within(t, time.Minute, "a loan is answered", func() bool {
				got, _ := a.ask(a.questions()[0])
				return got.status == http.StatusOK
			})
			resume := hang(pg)
			a.allRefused()
			if logged := s.Logged(); !strings.Contains(
				logged, `"level":"ERROR","msg":"the database cannot be used"`) {
				t.Errorf("it logged no error: %s", logged)
			}
			resume()
			waittest.Within(t, time.Minute, "a loan and a page are answered again", func() bool {
				loan, _ := a.ask(a.questions()[0])
				page, _ := a.ask(a.questions()[2])
				return loan.status == http.StatusOK && page.status == http.StatusOK
			})
		})
	}
}

// TestStopBesideAFrozenDatabase: data that cannot be written any more is given up in time.
func TestStopBesideAFrozenDatabase(t *testing.T) {
	t.Parallel()
	pg := newOwnPostgres(t)
	w := e2etest.NewOn(t, pg.url())
	s := w.Serve()
	waittest.Within(t, time.Minute, "the service works", func() bool {
		answer, err := http.Get(s.URL + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		return err == nil && strings.Contains(string(text), "\ndrawbridge_workers 1\n")
	})
	defer pg.freeze()()
	answer, err := http.Get(s.URL + "/api/v2/loan/x") // an entry for the request log
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close() // its content does not matter
	began := time.Now()
	if err := s.Command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	waittest.Within(t, 40*time.Second, "the service has ended", func() bool {
		return errors.Is(s.Command.Process.Signal(syscall.Signal(0)), os.ErrProcessDone)
	})
	t.Logf("ended after %s", time.Since(began).Round(time.Millisecond))
}

// TestLockedDatabase makes requests and opens pages that need rows which another
// transaction has locked, on a server without TLS by a URL that does not say so.
func TestLockedDatabase(t *testing.T) {
	t.Parallel()
	const away = http.StatusServiceUnavailable
	page := question{
		"applications", "GET", paths.Applications, nil, true, away, "The database does not answer",
	}
	cases := map[string]struct {
		statement string
		page      bool
	}{
		"rows":    {`SELECT FROM applications FOR UPDATE`, false},
		"a table": {`LOCK TABLE applications`, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2etest.New(t)
			w.Env["DATABASE_URL"] = bare(t, w.Env["DATABASE_URL"])
			w.Env["DRAWBRIDGE_DATABASE_TIMEOUT"] = shortPatience
			data := w.DemoData()
			db := w.Open(t)
			s := w.Serve("--roles", "api,console")
			a := &asker{t, data, visit(t, s.URL)}
			holding := pgtest.Begin(t, db, c.statement)
			a.refused(a.questions()[1])
			if c.page {
				a.refused(page)
			}
			e2etest.WaitForCount(t, db, 0, `
				SELECT count(*) FROM pg_stat_activity
				 WHERE datname = current_database() AND wait_event_type = 'Lock'`)
			if err := holding.Rollback(); err != nil {
				t.Fatal(err)
			}
			if status := e2etest.RequestDraw(t, s.URL, data, "first_regular"); status != http.StatusOK {
				t.Errorf("afterwards a draw answered %d", status)
			}
		})
	}
}

// TestServiceDoesNotHoldPostgresUp stops a server without TLS, whose URL does not say so,
// while a service is connected to it.
func TestServiceDoesNotHoldPostgresUp(t *testing.T) {
	t.Parallel()
	pg := newOwnPostgres(t)
	w := e2etest.NewOn(t, bare(t, pg.url()))
	data := w.DemoData()
	s := w.Serve()
	a := &asker{t, data, visit(t, s.URL)}
	if got, err := a.ask(a.questions()[0]); got.status != http.StatusOK {
		t.Fatalf("a loan is answered %d (%v): %s", got.status, err, got.body)
	}
	// An open socket that never sends anything would delay the server's stop for this long.
	db := w.Open(t)
	for _, setting := range []string{
		`ALTER SYSTEM SET authentication_timeout = '10min'`, `SELECT pg_reload_conf()`,
	} {
		if _, err := db.ExecContext(t.Context(), setting); err != nil {
			t.Fatal(err)
		}
	}
	server := pg.process()
	if err := syscall.Kill(server, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	waittest.Within(t, 5*time.Minute, "Postgres has stopped", func() bool {
		return errors.Is(syscall.Kill(server, 0), syscall.ESRCH)
	})
	if err := pg.server.Stop(); err != nil {
		t.Fatal(err)
	}
	a.refused(a.questions()[0])
	pg.start()
}

// TestTLSIsUsedWhereOffered connects by a URL without TLS parameters to a server that
// offers TLS.
func TestTLSIsUsedWhereOffered(t *testing.T) {
	t.Parallel()
	pg := newOwnPostgres(t)
	encryptServer(t, filepath.Join(pg.server.Folder(), "data"))
	db, err := postgres.Open(t.Context(), bare(t, pg.url()))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range []string{`ALTER SYSTEM SET ssl = on`, `SELECT pg_reload_conf()`} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	waittest.Within(t, time.Minute, "a connection is encrypted", func() bool {
		fresh, err := postgres.Open(t.Context(), bare(t, pg.url()))
		if err != nil {
			t.Fatal(err)
		}
		defer fresh.Close()
		var encrypted bool
		err = fresh.GetContext(t.Context(), &encrypted,
			`SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`)
		return err == nil && encrypted
	})
}

// encryptServer puts a certificate where the server expects it.
func encryptServer(t *testing.T, data string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.Stat(data)
	if err != nil {
		t.Fatal(err)
	}
	owner := folder.Sys().(*syscall.Stat_t)
	for name, block := range map[string]*pem.Block{
		"server.crt": {Type: "CERTIFICATE", Bytes: certificate},
		"server.key": {Type: "EC PRIVATE KEY", Bytes: private},
	} {
		path := filepath.Join(data, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, int(owner.Uid), int(owner.Gid)); err != nil {
			t.Fatal(err)
		}
	}
}
