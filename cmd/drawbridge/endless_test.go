package main

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

	"github.com/google/uuid"

	"drawbridge/internal/app"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook"
)

// TestEndlessAnswersDoNotFillTheMemory has 500 endpoints answer at once with a
// body that does not end, and looks at the most memory that the real process
// ever had.
func TestEndlessAnswersDoNotFillTheMemory(t *testing.T) {
	t.Parallel()
	const endpoints, limitMiB = 500, 300
	w := newWorld(t)
	partner := uuid.MustParse(w.demoData().Partners[0].UID.String())
	var arrived atomic.Int64
	answers := endlessEndpoints(t, endpoints, &arrived)
	db := w.open(t)
	services := openServices(t, w, db)
	var subscriptions []uuid.UUID
	err := db.InTx(t.Context(), func(tx *postgres.Tx) error {
		for _, url := range answers {
			made, _, err := services.Webhooks.Subscribe(t.Context(), tx, partner, webhook.Settings{
				URL: url, Auth: webhook.AuthNone, Events: []string{webhook.AllEvents},
			}, "test")
			if err != nil {
				return err
			}
			subscriptions = append(subscriptions, made.UID)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s := w.serve()
	err = db.InTx(t.Context(), func(tx *postgres.Tx) error {
		for _, uid := range subscriptions {
			_, err := services.Webhooks.Test(t.Context(), tx, uid, lending.EventTaskCreated)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	waitForCount(t, db, endpoints, `
		SELECT count(*)
		  FROM deliveries
		 WHERE test
		   AND state = 'delivered'`)
	if got := arrived.Load(); got != endpoints {
		t.Errorf("%d requests arrived, want one at each of %d endpoints", got, endpoints)
	}
	if peak := peakMemory(t, s); peak > limitMiB {
		t.Errorf("the process took %d MiB, want less than %d", peak, limitMiB)
	} else {
		t.Logf("the process took at most %d MiB", peak)
	}
}

// openServices are the use cases as a command has them.
func openServices(t *testing.T, w *world, db *postgres.DB) *app.Services {
	t.Helper()
	env := &environment{
		ctx: t.Context(), getenv: func(name string) string { return w.vars[name] },
	}
	settings, err := env.config()
	if err != nil {
		t.Fatal(err)
	}
	settings.SecretsKey = secret.GenerateKey()
	keys, err := keyring(settings)
	if err != nil {
		t.Fatal(err)
	}
	made, err := app.New(settings, db, keys, app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// endlessEndpoints listen on ports of their own and never stop answering.
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
	t.Cleanup(func() { _ = server.Close() }) // it waits for nobody
	var urls []string
	for range n {
		listener, err := new(net.ListenConfig).Listen(context.WithoutCancel(t.Context()),
			"tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = server.Serve(listener) }() // it ends by Close
		urls = append(urls, "http://"+listener.Addr().String()+"/hook")
	}
	return urls
}

// waitForCount waits until the query counts n.
func waitForCount(t *testing.T, db *postgres.DB, n int, query string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var got int
	for deadline := time.After(2 * time.Minute); ; {
		if err := db.GetContext(t.Context(), &got, query); err != nil {
			t.Fatal(err)
		}
		if got == n {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("counted %d in the end, want %d", got, n)
		}
	}
}

// peakMemory is the most that the process ever had in memory, in MiB.
func peakMemory(t *testing.T, s *server) int {
	t.Helper()
	return memory(t, s, "VmHWM:")
}

// memory is a figure of the process's memory, in MiB.
func memory(t *testing.T, s *server, figure string) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.command.Process.Pid))
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
