package main

import (
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/secret"
)

// TestRestoredBackupSendsNothingUnasked walks through backup and restore with
// the tools of the manual. The backup knows a delivery and an e-mail as waiting
// that were sent after it was made.
func TestRestoredBackupSendsNothingUnasked(t *testing.T) {
	t.Parallel()
	w, e := newWorld(t), newEndpoint(t, "200 OK")
	w.vars["SSL_CERT_FILE"] = e.caFile
	w.vars["DRAWBRIDGE_SECRETS_KEY"] = secret.GenerateKey()
	data := w.demoData()
	w.subscribe(data, e)
	api := w.serve("--roles", "api")
	if status := draw(t, api.url, data, "first_regular"); status != http.StatusOK {
		t.Fatalf("the draw answered %d", status)
	}
	api.stop()
	dump := w.backUp()

	original := w.serve() // the backup lies in the cupboard, and life goes on
	sent := e.next(t)
	uid, _ := sent.value("x-drawbridge-delivery")
	w.waitForState(uid, "delivered")
	original.stop()

	t.Run("cancelled", func(t *testing.T) {
		restored := w.restore(t, dump)
		s, mails := restored.serveHeld(e)
		// What is new was certainly not sent before.
		if status := draw(t, s.url, data, "middle"); status != http.StatusOK {
			t.Errorf("the API answered a draw with %d while the hold is in force", status)
		}
		var done releasedJSON
		restored.json(&done, "restore", "release", "--deliveries", "cancel", "--mails", "cancel",
			"--reason", "both were sent before the fire")
		if done != (releasedJSON{CancelledDeliveries: 1, CancelledMails: mails}) {
			t.Errorf("cancelled %+v", done)
		}
		fresh, _ := e.next(t).value("x-drawbridge-delivery")
		if fresh == uid {
			t.Error("the delivery of before the backup was sent a second time")
		}
		restored.waitForState(fresh, "delivered")
		restored.waitForState(uid, "cancelled")
		s.stop()
		e.wantSilence(t)
	})
	t.Run("sent when asked", func(t *testing.T) {
		restored := w.restore(t, dump)
		restored.serveHeld(e)
		var done releasedJSON
		restored.json(&done, "restore", "release", "--deliveries", "send", "--mails", "send",
			"--reason", "the partner lost it, too")
		if again, _ := e.next(t).value("x-drawbridge-delivery"); again != uid {
			t.Errorf("%s was sent, not %s", again, uid)
		}
		if got := restored.run("", "restore", "release", "--deliveries", "send", "--mails", "send",
			"--reason", "twice"); got.status != exitFailed {
			t.Errorf("a second decision ended with %d: %s", got.status, got.stderr)
		}
	})
}

// TestHoldByHand is for a database that went back in time where it stands.
func TestHoldByHand(t *testing.T) {
	t.Parallel()
	w, e := newWorld(t), newEndpoint(t, "200 OK")
	w.vars["SSL_CERT_FILE"] = e.caFile
	data := w.demoData()
	w.subscribe(data, e)
	if got := w.run("", "restore", "hold", "--reason", "recovered to 09:30"); got.status != 0 {
		t.Fatalf("ended with %d: %s", got.status, got.stderr)
	}
	s := w.serve()
	if status := draw(t, s.url, data, "first_regular"); status != http.StatusOK {
		t.Fatalf("the draw answered %d", status)
	}
	s.waitForLog("nothing is sent")
	e.wantSilence(t)
	if got := w.run("", "restore", "show"); !strings.Contains(got.stdout, "recovered to 09:30") {
		t.Errorf("shows %s", got.stdout)
	}
	w.run("", "restore", "release", "--deliveries", "cancel", "--mails", "cancel", "--reason", "ok")
	e.next(t)
}

// serveHeld starts the service on a restored database, sees it hold, and returns
// how many e-mails it holds: those of the demo data.
func (w *world) serveHeld(e *endpoint) (*server, int) {
	w.t.Helper()
	s := w.serve()
	s.waitForLog("nothing is sent")
	e.wantSilence(w.t)
	var state restoreJSON
	w.json(&state, "restore", "show")
	if !state.Held || state.Deliveries != 1 || state.Mails == 0 {
		w.t.Errorf("the state is %+v", state)
	}
	return s, state.Mails
}

// waitForLog waits until the service has logged a text.
func (s *server) waitForLog(text string) {
	s.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !strings.Contains(s.logged(), text) {
		if time.Now().After(deadline) {
			s.t.Fatalf("the service never logged %q but %s", text, s.logged())
		}
		<-time.After(20 * time.Millisecond)
	}
}

// wantSilence fails when a request comes.
func (e *endpoint) wantSilence(t *testing.T) {
	t.Helper()
	select {
	case request := <-e.requests:
		t.Errorf("a request came: %v", request.header)
	case <-time.After(time.Second):
	}
}

// backUp backs the world's database up and returns the file.
func (w *world) backUp() string {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "drawbridge.dump")
	w.tool("pg_dump", "--format=custom", "--file="+file, w.vars["DATABASE_URL"])
	return file
}

// restore returns a world with the same settings on a new database.
func (w *world) restore(t *testing.T, dump string) *world {
	t.Helper()
	restored := newWorldOn(t, pgtest.URL(t))
	url := restored.vars["DATABASE_URL"]
	restored.vars = maps.Clone(w.vars)
	restored.vars["DATABASE_URL"] = url
	db := restored.open(t)
	_, err := db.ExecContext(t.Context(), `DROP SCHEMA public CASCADE; CREATE SCHEMA public`)
	if err != nil {
		t.Fatal(err)
	}
	restored.tool("pg_restore", "--no-owner", "--exit-on-error", "--dbname="+url, dump)
	return restored
}

// tool runs a program that comes with Postgres.
func (w *world) tool(name string, args ...string) string {
	w.t.Helper()
	path, err := exec.LookPath(name)
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); err != nil && len(found) > 0 {
		path = found[len(found)-1]
	}
	command := exec.Command(path, args...)
	command.Env = os.Environ()
	output, err := command.CombinedOutput()
	if err != nil {
		w.t.Fatalf("%s ended with %v: %s", name, err, output)
	}
	return string(output)
}
