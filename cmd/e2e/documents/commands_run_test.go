package documents

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/calendar"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/seed"
)

// way is how to run a command of a document: the values for its capitalised words, and
// any further arguments. Ways with an empty document only prepare for the ones after
// them.
type way struct {
	line  string
	words map[string]string
	more  []string
	stdin string
}

// documentedWays run on one database in this order.
func documentedWays(d documentedData) []way {
	reason := "asked for by the auditors"
	held := map[string]string{"UID": d.Application, "TEXT": reason}
	return slices.Concat(documentedOfSubscriptions(d), []way{
		{line: "version"},
		{line: "config"},
		{line: "environment show"},
		{line: "environment set", more: []string{"development"}},
		{line: "demo"},
		{line: "queue list"},
		{line: "queue resume NAME", words: map[string]string{"NAME": "email"}},
		{line: "doctor", more: []string{"--https", d.endpoint}},
		{line: "partner create --name NAME", words: map[string]string{"NAME": "Nord Solar"}},
		{line: "client rate", more: []string{d.Client, "--rate", "20", "--burst", "40"}},
		{line: "client create --lender --name payments --scope read --scope funding " +
			"--from 203.0.113.0/24"},
		{line: "audit list"},
		{line: "draw list"},
		{line: "product update --overdue-hours", more: []string{"24", d.Product}},
		{line: "event why", more: []string{d.Application, "--event", "task.created"}},
		{line: "statement rotate-key"},
		{line: "statement list"},
		{line: "statement show MERCHANT DAY", words: map[string]string{
			"MERCHANT": d.Merchant, "DAY": d.today,
		}},
		{line: "backup record"},
		{line: "help"},
		{line: "delivery list --state pending"},
		{line: "user create", more: []string{
			"--email", "new@lender.example", "--name", "Noor", "--role", "admin",
		}, stdin: "a long enough passphrase\n"},
		{line: "user password", more: []string{"new@lender.example"}, stdin: "another long passphrase\n"},
		{
			line:  "bulk create --recover --subscription UID --since TIME",
			words: map[string]string{"UID": d.Subscription, "TIME": d.since},
		},
		{line: "bulk confirm UID --reason TEXT", words: map[string]string{"UID": "BULK", "TEXT": reason}},
		{line: "email list"},
		{line: "email resend --state failed --since 2026-11-21T09:30:00Z"},
		{line: "secrets rotate-key"},
		{line: "secrets rotate-key --check"},
		{line: "application hold UID --reason TEXT", words: held},
		{line: "application holds"},
		{line: "application release UID --reason TEXT", words: held},
		{line: "retention show"},
		{line: "retention set", more: []string{"--body-days", "120"}},
		{line: "retention run --dry-run"},
		{line: "retention run"},
		{line: "restore hold --reason TEXT", words: map[string]string{"TEXT": reason}},
		{line: "restore show"},
		{
			line: "restore release",
			more: []string{"--deliveries", "cancel", "--mails", "cancel", "--reason", reason},
		},
		{line: "restore hold --reason TEXT", words: map[string]string{"TEXT": reason}},
		{line: `restore release --deliveries cancel --mails cancel --reason "sent before the outage"`},
		{line: "restore hold --reason TEXT", words: map[string]string{"TEXT": reason}},
		{line: `restore release --deliveries send --mails send --reason "never left"`},
		{line: "migrate down"},
		{line: "migrate up"},
		{line: "seed", more: []string{
			"--deliveries", "100", "--attempts", "150", "--partners", "1",
		}},
		{line: "seed --days N", words: map[string]string{"N": "2"}, more: []string{
			"--deliveries", "100", "--attempts", "150", "--partners", "1",
		}},
	})
}

// documentedOfSubscriptions are the ways for subscriptions and their events.
func documentedOfSubscriptions(d documentedData) []way {
	it := map[string]string{"UID": d.Subscription, "N": "5"}
	return []way{
		{line: "subscription create --rate N", words: it, more: []string{
			"--partner", d.Partner, "--url", d.endpoint, "--event", "all",
		}},
		{line: "subscription update UID --rate N", words: it},
		{line: "subscription show UID", words: it},
		{line: "subscription update UID", words: it, more: []string{"--no-headers"}},
		{line: "subscription versions UID", words: it},
		{
			line:  "subscription restore UID --version N",
			words: map[string]string{"UID": d.Subscription, "N": "1"},
		},
		{line: "subscription probe UID", words: it},
		{line: "event list"},
		{line: "event show UID", words: map[string]string{"UID": d.Event}},
	}
}

// documentedServers are the documented ways to start the service; commands for a running
// service use the first.
var (
	documentedServers = []string{
		"serve", "serve --roles api", "serve --roles console", "serve --roles worker",
		"serve --demo",
	}
	documentedOfServer = []string{"health", "health --ready"}
	documentedListen   = "listen --url BASE_URL --client-id ID --client-secret-file FILE " +
		"--forward http://127.0.0.1:3000/hook"
)

// documentedData has the values for the capitalised words.
type documentedData struct {
	Subscription string `db:"subscription"`
	Application  string `db:"application"`
	Event        string `db:"event"`
	Partner      string `db:"partner"`
	Client       string `db:"client"`
	Merchant     string `db:"merchant"`
	Product      string `db:"product"`
	endpoint     string
	since, today string
}

// documentedLines are the command lines of every document, page and unit.
func documentedLines(t *testing.T) map[string]string {
	t.Helper()
	pages := slices.Clone(documents)
	for _, pattern := range []string{
		"web/docs/guides/*.md", "views/*/*.templ", "views/operations/quarantine.go",
		"docs/deploy/*",
	} {
		found, err := filepath.Glob("../../../" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			pages = append(pages, strings.TrimPrefix(path, "../../../"))
		}
	}
	lines := map[string]string{}
	for _, page := range pages {
		for _, found := range commanded.FindAllStringSubmatch(readDocument(t, page), -1) {
			line, _, _ := strings.Cut(found[1], " #")
			lines[strings.TrimSpace(line)] = page
		}
	}
	return lines
}

// TestDocumentedCommandsRun runs every command that a document or a page of the console
// names, on one database, and fails if there is no way to run one.
func TestDocumentedCommandsRun(t *testing.T) {
	t.Parallel()
	w, e := e2etest.New(t), e2etest.NewEndpoint(t, "204 No Content")
	w.Env["SSL_CERT_FILE"], w.Env["DRAWBRIDGE_SECRETS_KEY"] = e.CAFile, secret.GenerateKey()
	db := w.Open(t)
	data := documented(t, w, db, e)
	lines := documentedLines(t)
	for _, way := range documentedWays(data) {
		args := slices.Concat(words(way.line), way.more)
		for i, word := range args {
			if value, stands := way.words[word]; stands {
				args[i] = value
			}
			if args[i] == "BULK" {
				args[i] = one(t, db, `SELECT bulk_uid::text FROM bulk_resends WHERE state = 'draft'`)
			}
		}
		if got := w.Run(way.stdin, args...); got.Status != 0 {
			t.Errorf("%v ended with %d: %s%s", args, got.Status, got.Stdout, got.Stderr)
		}
		delete(lines, way.line)
	}
	for _, line := range documentedServers {
		s := w.Serve(strings.Fields(line)[1:]...)
		if line == documentedServers[0] {
			listen := w.Env["DRAWBRIDGE_LISTEN"]
			w.Env["DRAWBRIDGE_LISTEN"] = strings.TrimPrefix(s.URL, "http://")
			for _, asked := range documentedOfServer {
				if got := w.Run("", strings.Fields(asked)...); got.Status != 0 {
					t.Errorf("%s ended with %d: %s", asked, got.Status, got.Stderr)
				}
				delete(lines, asked)
			}
			w.Env["DRAWBRIDGE_LISTEN"] = listen
			listenUntilInterrupted(t, w, s)
			delete(lines, documentedListen)
			delete(lines, "listen")
		}
		if status := s.Stop(); status != 0 {
			t.Errorf("%s ended with %d: %s", line, status, s.Logged())
		}
		delete(lines, line)
	}
	bare := e2etest.NewWithoutDatabase(t, nil)
	for line, page := range lines {
		help := bare.Run("", append(strings.Fields(strings.TrimSuffix(line, "--help")), "--help")...)
		if strings.HasSuffix(line, "--help") || strings.Contains(help.Stdout, " <command>") {
			continue // its output is checked elsewhere, and a group of commands does nothing by itself
		}
		t.Errorf("%s names `drawbridge %s`, which this test knows no way to run", page, line)
	}
}

// listenUntilInterrupted follows the feed of a server as the documents say.
func listenUntilInterrupted(t *testing.T, w *e2etest.Harness, s *e2etest.Server) {
	t.Helper()
	client := w.DemoData().Partners[0].Clients[0]
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(client.Secret), 0o600); err != nil {
		t.Fatal(err)
	}
	command := w.Command(strings.Fields(strings.NewReplacer(
		"BASE_URL", s.URL+"/api", "ID", client.ID, "FILE", file).Replace(documentedListen))...)
	notes, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(notes)
	for said.Scan() {
		if strings.HasPrefix(said.Text(), "following ") {
			_ = command.Process.Signal(os.Interrupt) // what follows shows whether it arrived
		}
	}
	if err := command.Wait(); err != nil {
		t.Errorf("%s ended with %v: %s", documentedListen, err, said.Text())
	}
}

// documented fills the database and returns the subjects of the commands.
func documented(
	t *testing.T, w *e2etest.Harness, db *postgres.DB, e *e2etest.Endpoint,
) documentedData {
	t.Helper()
	w.DemoData()
	_, err := seed.Fill(t.Context(), db, seed.Plan{Deliveries: 2000, Attempts: 3000, Partners: 2})
	if err != nil {
		t.Fatal(err)
	}
	w.Execute(db, `
		INSERT INTO river_queue (name, paused_at, updated_at) VALUES ('email', now(), now())`)
	data := documentedData{
		endpoint: e.URL, since: time.Now().AddDate(0, -3, 0).UTC().Format(time.RFC3339),
		today: calendar.Calendar{Zone: newYork(t)}.DayOf(time.Now()).String(),
	}
	err = db.GetContext(t.Context(), &data, `
		SELECT d.subscription_uid::text AS subscription, d.application_uid::text AS application,
		       d.event_uid::text AS event, s.partner_uid::text AS partner,
		       (SELECT client_id FROM clients LIMIT 1) AS client,
		       (SELECT merchant_uid::text FROM merchants LIMIT 1) AS merchant,
		       (SELECT product_uid::text FROM products LIMIT 1) AS product
		  FROM deliveries d
		  JOIN subscriptions s ON s.subscription_uid = d.subscription_uid AND s.state <> 'deleted'
		 WHERE d.state = 'failed'
		   AND d.application_uid IS NOT NULL
		   AND d.created_at > now() - interval '2 months'
		 LIMIT 1`)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// newYork is the zone of business days, unless another one is set.
func newYork(t *testing.T) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// words splits a command line; quoted text is one word.
func words(line string) []string {
	var found []string
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			found = append(found, part)
		} else {
			found = append(found, strings.Fields(part)...)
		}
	}
	return found
}

func one(t *testing.T, db sqlx.QueryerContext, query string) string {
	t.Helper()
	var text string
	if err := sqlx.GetContext(t.Context(), db, &text, query); err != nil {
		t.Fatal(err)
	}
	return text
}

// made matches documented calls of make.
var made = regexp.MustCompile("(?m)(?:`|^)make ([a-z][^`\n]*)")

// TestDocumentedTargetsExist lets make itself read every documented call, without running
// it, and checks that the variables in the calls exist.
func TestDocumentedTargetsExist(t *testing.T) {
	t.Parallel()
	makefile, seen := readDocument(t, "Makefile"), 0
	for _, page := range documents {
		for _, found := range made.FindAllStringSubmatch(readDocument(t, page), -1) {
			line, _, _ := strings.Cut(found[1], " #")
			line, _, _ = strings.Cut(line, " && ")
			seen++
			if output, err := bash(t, "make --no-print-directory --dry-run "+line); err != nil {
				t.Errorf("%s names `make %s`: %v: %s", page, line, err, output)
			}
			for _, assignment := range regexp.MustCompile(`\b[A-Z]+=`).FindAllString(line, -1) {
				if !strings.Contains(makefile, "$("+strings.TrimSuffix(assignment, "=")+")") {
					t.Errorf("%s names `make %s`, and no target uses %s", page, line, assignment)
				}
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d calls of make were found", seen)
	}
}

// TestDocumentedToolsWork runs the documented tools other than make and the program
// itself.
func TestDocumentedToolsWork(t *testing.T) {
	t.Parallel()
	key, err := bash(t, "openssl rand -base64 32")
	if err != nil {
		t.Fatalf("openssl: %v", err)
	}
	if _, err := secret.ParseKeyring("base64key://" + strings.TrimSpace(key)); err != nil {
		t.Errorf("the documented key is refused: %v", err)
	}
	versions, err := bash(t, "go version -m "+e2etest.Binary)
	if err != nil || !strings.Contains(versions, "github.com/labstack/echo/v4") {
		t.Errorf("go version -m: %v: %s", err, versions)
	}
	help, err := bash(t, "make help")
	for _, target := range []string{"run", "test", "bench", "chaos", "fresh-test", "reproducible"} {
		if err != nil || !strings.Contains(help, "make "+target+" ") {
			t.Errorf("make help does not list %s (%v): %s", target, err, help)
		}
	}
	for _, page := range documents {
		for _, script := range regexp.MustCompile("`(\\.ci/[a-z-]+)").FindAllStringSubmatch(
			readDocument(t, page), -1) {
			if _, err := bash(t, "test -x "+script[1]+" && bash -n "+script[1]); err != nil {
				t.Errorf("%s names %s, which cannot be run", page, script[1])
			}
		}
	}
}
