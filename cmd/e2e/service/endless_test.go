package service

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lib/pq"

	"drawbridge/cmd/e2e/e2etest"
)

// TestEndlessAnswersDoNotFillTheMemory lets 500 endpoints answer at once with a body
// that does not end, and checks the peak memory of the real process.
func TestEndlessAnswersDoNotFillTheMemory(t *testing.T) {
	t.Parallel()
	const endpoints, limitMiB = 500, 300
	w := e2etest.New(t)
	data := w.DemoData()
	var arrived atomic.Int64
	answers := endlessEndpoints(t, endpoints, &arrived)
	db := w.Open(t)
	w.Subscribe(data, answers[0], "--auth", "none")
	_, err := db.ExecContext(t.Context(), `
		WITH made AS (
		     INSERT INTO subscriptions
		     SELECT (jsonb_populate_record(s, jsonb_build_object(
		                 'subscription_uid', gen_random_uuid(), 'url', other))).*
		       FROM subscriptions s, unnest($1::text[]) AS other
		     RETURNING subscription_uid, url)
		INSERT INTO subscription_versions
		SELECT (jsonb_populate_record(v, to_jsonb(made))).*
		  FROM subscription_versions v, made`, pq.Array(answers[1:]))
	if err != nil {
		t.Fatal(err)
	}
	s := w.Serve()
	e2etest.WantDraw(t, s.URL, data, "first_regular")
	e2etest.WaitForCount(t, db, endpoints, `
		SELECT count(*)
		  FROM deliveries
		 WHERE state = 'delivered'`)
	if got := arrived.Load(); got != endpoints {
		t.Errorf("%d requests arrived, want one at each of %d endpoints", got, endpoints)
	}
	if peak := peakMemory(t, s); peak > limitMiB {
		t.Errorf("the process took %d MiB, want less than %d", peak, limitMiB)
	} else {
		t.Logf("the process took at most %d MiB", peak)
	}
}

// endlessEndpoints listen on separate ports and never stop sending.
func endlessEndpoints(t *testing.T, n int, arrived *atomic.Int64) []string {
	t.Helper()
	chunk := bytes.Repeat([]byte("again and again "), 4096)
	server := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			arrived.Add(1)
			for err := error(nil); err == nil; {
				_, err = w.Write(chunk)
			}
		}),
	}
	t.Cleanup(func() { _ = server.Close() }) // it does not wait for requests
	var urls []string
	for range n {
		listener, err := new(net.ListenConfig).Listen(context.WithoutCancel(t.Context()),
			"tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = server.Serve(listener) }() // Close ends it
		urls = append(urls, "http://"+listener.Addr().String()+"/hook")
	}
	return urls
}

// peakMemory is the peak resident memory of the process, in MiB.
func peakMemory(t *testing.T, s *e2etest.Server) int {
	t.Helper()
	return memory(t, s, "VmHWM:")
}

// memory reads one figure of the process's memory, in MiB.
func memory(t *testing.T, s *e2etest.Server, figure string) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Command.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), figure)
	value, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kib, err := strconv.Atoi(value)
	if err != nil {
		t.Fatal(err)
	}
	return kib / 1024
}
