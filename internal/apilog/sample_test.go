package apilog_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"drawbridge/internal/apilog"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
)

// TestUnauthenticatedAreSampled floods the log with requests without credentials: a few of each
// address and minute are kept, and all entries of a client.
func TestUnauthenticatedAreSampled(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	writer := apilog.NewWriter(db)
	minute := time.Now().UTC().Truncate(time.Minute)
	const clients = 20
	for i := range apilog.BufferSize + clients {
		writer.Record(entry(minute, func(e *apilog.Entry) {
			e.Authenticated, e.Status = false, 401
			e.Address = fmt.Sprintf("2001:db8:0:%x::%x", i%3, i)
		}))
	}
	for range clients {
		writer.Record(entry(minute, nil))
	}
	ctx, end := context.WithCancel(t.Context())
	end()
	writer.Run(ctx)
	kept, unknown := 0, 0
	for _, request := range list(t, db, apilog.Filter{}) {
		if request.Authenticated {
			kept++
		} else {
			unknown++
		}
	}
	if kept != clients || unknown != 3*5 {
		t.Errorf("%d of %d requests of a client and %d of unknown are kept, want all and 15",
			kept, clients, unknown)
	}
	if got := writer.Passed(); got != apilog.BufferSize+clients-15 || writer.Dropped() != 0 {
		t.Errorf("%d were passed over and %d dropped", got, writer.Dropped())
	}
}

// TestSamplesAcrossAMinutesEdge: requests are recorded as they end, so some that began in the
// previous minute arrive in between. They do not reset the counts.
func TestSamplesAcrossAMinutesEdge(t *testing.T) {
	t.Parallel()
	writer := apilog.NewWriter(nil)
	minute := time.Now().UTC().Truncate(time.Minute)
	const each = 100
	for range each {
		for _, began := range []time.Time{minute.Add(-time.Second), minute} {
			writer.Record(entry(began, func(e *apilog.Entry) { e.Authenticated = false }))
		}
	}
	if kept := 2*each - writer.Passed(); kept > 2*5 {
		t.Errorf("%d requests of one address and two minutes are kept, want 10 at most", kept)
	}
}

// TestAnOutageLosesNothing stores what was recorded while the database was away.
func TestAnOutageLosesNothing(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	target, err := url.Parse(db.URL())
	if err != nil {
		t.Fatal(err)
	}
	through := *target
	through.Host = address
	go relay(listener, target.Host)
	away, err := postgres.Open(t.Context(), through.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = away.Close() })
	away.SetMaxIdleConns(0)
	_ = listener.Close()

	writer := apilog.NewWriter(away)
	ctx, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		writer.Run(ctx)
	}()
	const many = 50
	for range many {
		writer.Record(entry(time.Now(), nil))
	}
	// Three quick attempts and more are over.
	time.AfterFunc(3*time.Second, func() {
		again, err := net.Listen("tcp", address)
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { _ = again.Close() })
		relay(again, target.Host)
	})
	waittest.Until(t, "all are stored", func() bool { return writer.Stored() == many })
	end()
	<-done
	if got := len(list(t, db, apilog.Filter{})); got != many || writer.Dropped() != 0 {
		t.Errorf("%d are in the log and %d dropped", got, writer.Dropped())
	}
}

// TestAFullPoolLosesNothing stores what was recorded while others held every connection for
// longer than the attempts take.
func TestAFullPoolLosesNothing(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.SetMaxOpenConns(1)
	held, err := db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	writer := apilog.NewWriter(db)
	writer.TryFor(100 * time.Millisecond)
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { writer.Run(ctx) })
	writer.Record(entry(time.Now(), nil))
	time.AfterFunc(2*time.Second, func() {
		if err := held.Close(); err != nil {
			t.Error(err)
		}
	})
	waittest.Until(t, "the entry is stored or dropped", func() bool {
		return writer.Stored()+writer.Dropped() > 0
	})
	end()
	running.Wait()
	if writer.Dropped() != 0 {
		t.Errorf("%d entries are dropped", writer.Dropped())
	}
}

// relay forwards connections until the listener is closed.
func relay(listener net.Listener, target string) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", target)
		if err != nil {
			_ = conn.Close()
			continue
		}
		go func() {
			_, _ = io.Copy(server, conn)
			_ = server.Close()
		}()
		go func() {
			_, _ = io.Copy(conn, server)
			_ = conn.Close()
		}()
	}
}
