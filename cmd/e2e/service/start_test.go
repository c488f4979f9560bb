package service

import (
	"encoding/base64"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/pressly/goose/v3/lock"

	"drawbridge/cmd/e2e/e2etest"
)

// TestStopWhileStarting stops a service that waits for its turn to migrate.
func TestStopWhileStarting(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	db := w.Open(t)
	if _, err := db.ExecContext(t.Context(), `
		DELETE FROM goose_db_version
		 WHERE version_id = (SELECT max(version_id) FROM goose_db_version)`); err != nil {
		t.Fatal(err)
	}
	migrating, err := db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer migrating.Close()
	if _, err := migrating.ExecContext(
		t.Context(), `SELECT pg_advisory_lock($1)`, lock.DefaultLockID); err != nil {
		t.Fatal(err)
	}

	command := w.Command("serve")
	var stdout, stderr strings.Builder
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() }) // it has already ended unless the test failed
	e2etest.WaitForCount(t, db, 1, `
		SELECT count(*)
		  FROM pg_stat_activity
		 WHERE datname = current_database()
		   AND query LIKE '%pg_try_advisory_lock%'
		   AND query NOT LIKE '%pg_stat_activity%'`)
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil || stdout.Len() > 0 {
		t.Errorf("it ended with %v, printed %q and logged %s", err, stdout.String(), stderr.String())
	}
}

// TestAPIAloneHasPartitions starts a process without the worker's chores, long after
// the last worker ran: it must be able to record events before it says it is ready.
func TestAPIAloneHasPartitions(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	data := w.DemoData()
	db := w.Open(t)
	var months []string
	err := db.SelectContext(t.Context(), &months, `
		SELECT inhrelid::regclass::text
		  FROM pg_inherits
		 WHERE inhparent IN ('events'::regclass, 'deliveries'::regclass, 'attempts'::regclass)`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `DROP TABLE `+strings.Join(months, ", ")); err != nil {
		t.Fatal(err)
	}
	s := w.Serve("--roles", "api")
	e2etest.WaitForCount(t, db, len(months)-3, `
		SELECT count(*) FROM pg_inherits
		 WHERE inhparent IN ('events'::regclass, 'deliveries'::regclass, 'attempts'::regclass)`)
	if status := e2etest.RequestDraw(t, s.URL, data, "first_regular"); status != http.StatusOK {
		t.Errorf("a draw answered %d", status)
	}
}

// TestProductionWarnsOfDoubtfulSettings starts with settings that production accepts but
// that are probably a mistake.
func TestProductionWarnsOfDoubtfulSettings(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	w.Env["DRAWBRIDGE_ENV"] = "production"
	w.Env["DRAWBRIDGE_PUBLIC_URL"] = "https://drawbridge.example"
	key := base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789ABCDEF"))
	w.Env["DRAWBRIDGE_SECRETS_KEY"] = "base64key://" + key
	w.Env["DRAWBRIDGE_WEBHOOK_ALLOW"] = "10.0.0.0/8"
	w.Env["DRAWBRIDGE_WEBHOOK_ALLOW_HTTP"] = "true"
	logged := w.Serve().Logged()
	for _, name := range []string{
		"DRAWBRIDGE_BLOB_URL", "DRAWBRIDGE_WEBHOOK_ALLOW_HTTP", "DRAWBRIDGE_SMTP_URL",
	} {
		if strings.Count(logged, name) != 1 {
			t.Errorf("it does not say once what is doubtful about %s; it logged %s", name, logged)
		}
	}
}

// TestAFirstStartIsToldWhatIsWrong: at a first start the port is taken or settings are misspelt,
// and the error says what to do about that.
func TestAFirstStartIsToldWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, test := range map[string]struct {
		value, want string
		status      int
	}{
		"DRAWBRIDGE_LISTEN":        {taken.Addr().String(), "choose another port", e2etest.ExitFailed},
		"DRAWBRIDGE_WEBHOOK_RETYR": {"1m", "did you mean DRAWBRIDGE_WEBHOOK_RETRY?", e2etest.ExitUsage},
	} {
		started := *w
		started.Env = maps.Clone(w.Env)
		started.Env[name] = test.value
		got := started.Run("", "serve")
		last := got.Stderr[strings.LastIndexByte(strings.TrimSpace(got.Stderr), '\n')+1:]
		if got.Status != test.status || got.Stdout != "" || !strings.Contains(last, test.want) {
			t.Errorf("%s=%s: status %d, %q", name, test.value, got.Status, got.Stderr)
		}
	}
}

// TestAStartNamesTheDatabaseThatItCannotUse: the one error line of a failed start says which
// setting is wrong and which server it names, but not the password.
func TestAStartNamesTheDatabaseThatItCannotUse(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	// A port below the ephemeral ones, on which no server listens.
	const refused = "127.0.0.1:1"
	silent, err := net.Listen("tcp", "127.0.0.1:0") // nothing accepts its connections
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	right, err := url.Parse(w.Env["DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	user := right.User.Username()
	for name, test := range map[string]struct{ host, path, password, want string }{
		"wrong password":   {right.Host, right.Path, "hunter2", "password authentication failed"},
		"no such database": {right.Host, "/nowhere", "", "does not exist"},
		"refused port":     {refused, "/bridge", "hunter2", "connection refused"},
		"unknown host":     {"db.invalid:5432", "/bridge", "hunter2", "lookup db.invalid"},
		"no answer":        {silent.Addr().String(), "/bridge", "hunter2", "no answer within 1s"},
	} {
		address := *right
		address.Host, address.Path = test.host, test.path
		if test.password != "" {
			address.User = url.UserPassword(user, test.password)
		}
		started := *w
		started.Env = maps.Clone(w.Env)
		started.Env["DATABASE_URL"] = address.String()
		if name == "no answer" {
			started.Env["DRAWBRIDGE_DATABASE_TIMEOUT"] = "1s"
		}
		for _, command := range []string{"serve", "demo"} {
			got := started.Run("", command)
			if got.Status != e2etest.ExitFailed || strings.Count(got.Stderr, "\n") != 1 ||
				!strings.Contains(got.Stderr, "DATABASE_URL: "+test.host+test.path+": ") ||
				!strings.Contains(got.Stderr, test.want) || strings.Contains(got.Stderr, "hunter2") {
				t.Errorf("%s: %s ended with %d: %s", name, command, got.Status, got.Stderr)
			}
		}
	}
}
