package postgres_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lib/pq"

	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
)

// soon is far more than anything here may take, and far less than for ever.
const soon = 20 * time.Second

// bareURL is a database of the test's own, on a server without TLS, by a URL that does not mention
// TLS.
func bareURL(t *testing.T) string {
	t.Helper()
	address, err := url.Parse(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	query := address.Query()
	query.Del("sslmode")
	address.RawQuery = query.Encode()
	return address.String()
}

func TestWaitBudgetIsOneForAllStatements(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	ctx, end := postgres.WithWaitBudget(t.Context(), time.Second)
	defer end()
	began := time.Now()
	var err error
	for err == nil && time.Since(began) < soon {
		_, err = db.ExecContext(ctx, `SELECT pg_sleep(0.1)`)
	}
	if err == nil || !errors.Is(context.Cause(ctx), postgres.ErrOutOfTime) {
		t.Errorf("statements went on for %s; the last ended with %v", time.Since(began), err)
	}
}

func TestOnlyWaitingUsesTheBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, end := postgres.WithWaitBudget(t.Context(), 10*time.Second)
		defer end()
		<-time.After(time.Hour)
		waited, nested := postgres.Waiting(ctx), postgres.Waiting(ctx)
		<-time.After(6 * time.Second)
		nested()
		waited()
		<-time.After(time.Hour)
		waited = postgres.Waiting(ctx)
		postgres.Renew(ctx)
		<-time.After(8 * time.Second)
		waited()
		if err := ctx.Err(); err != nil {
			t.Fatalf("it ended early: %v", context.Cause(ctx))
		}
		began := time.Now()
		defer postgres.Waiting(ctx)()
		<-ctx.Done()
		if took := time.Since(began); took != time.Second {
			t.Errorf("it ended after another %s, want 1s", took)
		}
	})
}

// TestCancelledWithoutTLS shows that a statement is cancelled on a server without TLS when its
// context ends, also when the URL leaves the use of TLS open.
func TestCancelledWithoutTLS(t *testing.T) {
	t.Parallel()
	db, err := postgres.Open(t.Context(), bareURL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	asleep := func(want int) func() bool {
		return func() bool {
			return pgtest.Value[int](t, db, `
				SELECT count(*) FROM pg_stat_activity
				 WHERE datname = current_database() AND wait_event = 'PgSleep'`) == want
		}
	}
	for name, args := range map[string][]any{"plain": nil, "prepared": {600}} {
		ctx, cancel := context.WithCancel(t.Context())
		text := `SELECT pg_sleep(600)`
		if args != nil {
			text = `SELECT pg_sleep($1)`
		}
		ended := make(chan error, 1)
		go func() {
			_, err := db.ExecContext(ctx, text, args...)
			ended <- err
		}()
		waittest.Until(t, name+" sleeps", asleep(1))
		cancel()
		if err := <-ended; err == nil {
			t.Errorf("%s: it slept to the end", name)
		}
		waittest.Until(t, name+" goes on no more", asleep(0))
	}
}

// TestSilentServer opens a database at an address that accepts connections and sends nothing.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	for _, parameters := range []string{"", "?sslmode=disable", "?connect_timeout=600"} {
		began := time.Now()
		_, err := postgres.Open(t.Context(), "postgres://"+listener.Addr().String()+"/x"+parameters,
			postgres.WithTimeout(time.Second))
		if took := time.Since(began); !postgres.IsUnavailable(err) || took > soon {
			t.Errorf("%q: after %s it said %v", parameters, took, err)
		}
	}
}

func TestIsUnavailable(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		err  error
		want bool
	}{
		"nothing":              {nil, false},
		"too many connections": {&pq.Error{Code: "53300"}, true},
		"disk full":            {&pq.Error{Code: "53100"}, true},
		"shutting down":        {&pq.Error{Code: "57P01"}, true},
		"starting":             {&pq.Error{Code: "57P03"}, true},
		"cancelled by others":  {&pq.Error{Code: "57014"}, true},
		"standby":              {&pq.Error{Code: "25006"}, true},
		"locked":               {&pq.Error{Code: "55P03"}, true},
		"deadlocks":            {&pq.Error{Code: "40P01"}, true},
		"unique":               {&pq.Error{Code: "23505"}, false},
		"syntax":               {&pq.Error{Code: "42601"}, false},
		"out of time":          {postgres.ErrOutOfTime, true},
		"another's network":    {&net.OpError{Op: "dial", Err: io.EOF}, false},
		"another's connection": {driver.ErrBadConn, false},
	}
	for name, c := range cases {
		wrapped := c.err
		if c.err != nil {
			wrapped = fmt.Errorf("doing something: %w", c.err)
		}
		if got := postgres.IsUnavailable(wrapped); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
