package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"drawbridge/internal/app"
	"drawbridge/internal/document"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/migrations"
)

const (
	// clockWarning and clockError bound the difference between this machine's clock and the
	// database's. The program uses the database's clock; certificates are checked and logs are
	// written by this machine's.
	clockWarning = 2 * time.Second
	clockError   = 30 * time.Second
	// triedHosts is how many subscriptions' hosts are tried by default.
	triedHosts = 5
)

// Unreachable is the result of a failed connection to the database.
func Unreachable(err error) Checkup {
	remedy := "Check DATABASE_URL, and that Postgres runs and accepts connections from this machine."
	text := err.Error()
	switch {
	case strings.Contains(text, "startup parameter: extra_float_digits"):
		remedy = "A pooler is in front of Postgres. Set ignore_startup_parameters = extra_float_digits " +
			"in its settings; see PgBouncer in the scaling guide."
	case strings.Contains(text, "startup parameter"):
		remedy = "A pooler is in front of Postgres. Set DRAWBRIDGE_PREPARED_STATEMENTS=false for every " +
			"process; see PgBouncer in the scaling guide."
	case postgres.IsTooManyConnections(err):
		// The server says whose limit it is: too many connections for role "name".
		limit := postgres.ConnectionLimit{}
		if _, of, found := strings.Cut(text, "too many connections for "); found {
			kind, name, _ := strings.Cut(of, " ")
			name, _, _ = strings.Cut(name, " (")
			limit.Statement = "ALTER " + strings.ToUpper(kind) + " " + name
		}
		remedy = capital(allowMore(limit)) + "; see Connections in the scaling guide."
	}
	return Failure("database", err, remedy)
}

// Database checks the server, its schema and its clock.
func Database(ctx context.Context, db *postgres.DB) []Checkup {
	ctx, cancel := context.WithTimeout(ctx, checkupTimeout)
	defer cancel()
	var server struct {
		Version int       `db:"version"`
		Now     time.Time `db:"now"`
	}
	before := time.Now()
	err := db.GetContext(ctx, &server, `
		SELECT current_setting('server_version_num')::integer / 10000 AS version,
		       clock_timestamp() AS now`)
	took := time.Since(before)
	if err != nil {
		return []Checkup{Failure("database", err,
			"Check that the user of DATABASE_URL may connect and read.")}
	}
	answered := Checkup{
		Name: "database", Finding: OK,
		Detail: fmt.Sprintf("Postgres %d answered in %.1f ms.",
			server.Version, float64(took.Microseconds())/1000),
	}
	if server.Version < migrations.LeastPostgres {
		answered.Finding = Failed
		answered.Remedy = fmt.Sprintf("Drawbridge needs Postgres %d or later.", migrations.LeastPostgres)
	}
	if err := db.CheckPooling(ctx); err != nil {
		answered.Finding, answered.Detail = Failed, Sentence(err)
		answered.Remedy = "See PgBouncer in the scaling guide."
	}
	return []Checkup{
		answered, examineSchema(ctx, db), examineClock(server.Now.Sub(before.Add(took / 2))),
	}
}

func examineSchema(ctx context.Context, db *postgres.DB) Checkup {
	missing, err := migrations.Pending(ctx, db.DB.DB)
	switch {
	case err != nil:
		return Failure("migrations", err, "Check that the user of DATABASE_URL may read the schema.")
	case len(missing) > 0:
		return Checkup{
			Name: "migrations", Finding: Failed,
			Detail: "The schema lacks " + strings.Join(missing, ", ") + ".",
			Remedy: "Run drawbridge migrate up as the role that owns the schema.",
		}
	}
	return Checkup{Name: "migrations", Finding: OK, Detail: "The schema is current."}
}

// examineClock grades how far the database's clock is ahead of this one.
func examineClock(ahead time.Duration) Checkup {
	off := ahead.Abs().Round(time.Millisecond)
	found := Checkup{
		Name: "clock", Finding: grade(off, clockWarning, clockError),
		Detail: fmt.Sprintf("This machine and the database differ by %s.", off),
	}
	if found.Finding != OK {
		found.Remedy = "Let a time service (NTP) set the clocks of both machines."
	}
	return found
}

// examineBucket writes, reads and removes a small object in the bucket, where uploads end, and a
// small file in the temporary directory, where they are checked first.
func examineBucket(ctx context.Context, s *app.Services) ([]Checkup, error) {
	return []Checkup{
		examineStorage("bucket", document.Probe(ctx, s.Documents.Bucket()),
			"An object was written, read and removed.",
			"Check DRAWBRIDGE_BLOB_URL, and that its owner may write, read and delete there."),
		examineStorage("temporary", probeTemporary(),
			"A file was written in "+os.TempDir()+" and removed.",
			"Uploads pass through "+os.TempDir()+"; make it writable, or set TMPDIR."),
	}, nil
}

// examineStorage reports the result of a write probe.
func examineStorage(name string, err error, good, remedy string) Checkup {
	switch {
	case err == nil:
		return Checkup{Name: name, Finding: OK, Detail: good}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		remedy = "The disk is full: free space there. Uploads are refused with UNAVAILABLE until " +
			"then and work again at once; no restart is needed."
	}
	return Failure(name, err, remedy)
}

// probeTemporary writes a small file in the directory where uploads are checked.
func probeTemporary() error {
	file, err := os.CreateTemp("", "drawbridge-doctor-*")
	if err != nil {
		return fmt.Errorf("making a temporary file: %w", err)
	}
	_, err = file.WriteString("probe")
	if err = errors.Join(err, file.Close(), os.Remove(file.Name())); err != nil {
		return fmt.Errorf("writing a temporary file: %w", err)
	}
	return nil
}

// examineHTTPS connects to endpoints as a delivery would, without a request.
func examineHTTPS(
	ctx context.Context, s *app.Services, targets []string,
) (found []Checkup, err error) {
	if len(targets) == 0 { // the newest subscriptions, one for each host
		page, _, err := s.Webhooks.Subscriptions.List(ctx,
			subscription.Filter{}, postgres.Paging{Limit: postgres.MaxPage})
		if err != nil {
			return nil, fmt.Errorf("listing subscriptions: %w", err)
		}
		var hosts []string
		for _, subscribed := range page {
			endpoint, err := url.Parse(subscribed.URL)
			if err != nil || endpoint.Scheme != "https" || slices.Contains(hosts, endpoint.Host) ||
				len(targets) == triedHosts {
				continue
			}
			hosts, targets = append(hosts, endpoint.Host), append(targets, subscribed.URL)
		}
	}
	if len(targets) == 0 {
		return []Checkup{{
			Name: "https", Finding: Skipped,
			Detail: "There is no subscription whose endpoint could be tried.",
			Remedy: "Name a URL: drawbridge doctor --https https://hooks.example.com",
		}}, nil
	}
	for _, target := range targets {
		found = append(found, examineEndpoint(ctx, s.Webhooks, target))
	}
	return found, nil
}

func examineEndpoint(ctx context.Context, webhooks *webhook.Services, target string) Checkup {
	check := webhooks.Subscriptions.CheckURL(ctx, target)
	last := check.Steps[len(check.Steps)-1]
	for _, step := range check.Steps {
		if step.Verdict == check.Verdict {
			last = step
		}
	}
	host := target
	if parsed, err := url.Parse(target); err == nil && parsed.Host != "" {
		host = parsed.Host
	}
	found := Checkup{Name: "https", Finding: OK, Detail: host + ": " + last.Text}
	switch {
	case check.Verdict == subscription.CheckGood:
	case check.Verdict == subscription.CheckWarning && check.Expires.After(time.Now()):
		// It answers, but its certificate expires soon.
		found.Finding = Warning
		found.Remedy = "Tell the endpoint's owner."
	default:
		found.Finding = Failed
		found.Remedy = "If other hosts fail too, check this machine's resolver, routes and firewall; " +
			"otherwise the endpoint."
	}
	return found
}
