package service

import (
	"maps"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/secret"
)

// TestRestoredBackupSendsNothingUnasked does a backup and a restore with the tools of
// the manual. In the backup a delivery and an e-mail are waiting that were sent after it
// was made.
func TestRestoredBackupSendsNothingUnasked(t *testing.T) {
	t.Parallel()
	w, e := e2etest.New(t), e2etest.NewEndpoint(t, "200 OK")
	w.Env["SSL_CERT_FILE"] = e.CAFile
	w.Env["DRAWBRIDGE_SECRETS_KEY"] = secret.GenerateKey()
	data := w.DemoData()
	w.Subscribe(data, e.URL)
	api := w.Serve("--roles", "api")
	e2etest.WantDraw(t, api.URL, data, "first_regular")
	api.Stop()
	dump := backUp(w)

	original := w.Serve() // the service goes on after the backup
	sent := e.Next(t)
	uid, _ := sent.Value("x-drawbridge-delivery")
	w.WaitForState(uid, "delivered")
	original.Stop()

	t.Run("cancelled", func(t *testing.T) {
		restored := restore(t, w, dump)
		wantUnnoticed(restored)
		s, mails := serveQuarantined(restored, e)
		// New deliveries certainly have not been sent before.
		if status := e2etest.RequestDraw(t, s.URL, data, "middle"); status != http.StatusOK {
			t.Errorf("the API answered a draw with %d while the quarantine is in force", status)
		}
		var done e2etest.Released
		restored.JSON(&done, "restore", "release", "--deliveries", "cancel", "--mails", "cancel",
			"--reason", "both were sent before the fire")
		if done != (e2etest.Released{CancelledDeliveries: 1, CancelledMails: mails}) {
			t.Errorf("cancelled %+v", done)
		}
		fresh, _ := e.Next(t).Value("x-drawbridge-delivery")
		if fresh == uid {
			t.Error("the delivery of before the backup was sent a second time")
		}
		restored.WaitForState(fresh, "delivered")
		restored.WaitForState(uid, "cancelled")
		s.Stop()
		e.WantSilence(t)
	})
	t.Run("sent when asked", func(t *testing.T) {
		restored := restore(t, w, dump)
		serveQuarantined(restored, e)
		var done e2etest.Released
		restored.JSON(&done, "restore", "release", "--deliveries", "send", "--mails", "send",
			"--reason", "the partner lost it, too")
		if again, _ := e.Next(t).Value("x-drawbridge-delivery"); again != uid {
			t.Errorf("%s was sent, not %s", again, uid)
		}
		if got := restored.Run("", "restore", "release", "--deliveries", "send", "--mails", "send",
			"--reason", "twice"); got.Status != e2etest.ExitFailed {
			t.Errorf("a second decision ended with %d: %s", got.Status, got.Stderr)
		}
	})
}

// TestRunningProcessesNoticeARestoredDatabase: it appears at the address of the database that they
// serve, and deliveries are waiting in it that they have sent since the backup.
func TestRunningProcessesNoticeARestoredDatabase(t *testing.T) {
	t.Parallel()
	w, e := e2etest.New(t), e2etest.NewEndpoint(t, "200 OK")
	w.Env["SSL_CERT_FILE"] = e.CAFile
	w.Env["DRAWBRIDGE_SECRETS_KEY"] = secret.GenerateKey()
	data := w.DemoData()
	w.Subscribe(data, e.URL)
	api := w.Serve("--roles", "api,console")
	e2etest.WantDraw(t, api.URL, data, "first_regular")
	if !e2etest.SignsIn(t, api.URL, data.Users[0]) {
		t.Fatal("nobody signs in")
	}
	dump := backUp(w)
	worker := w.Serve("--roles", "worker")
	uid, _ := e.Next(t).Value("x-drawbridge-delivery")
	w.WaitForState(uid, "delivered")

	exchange(t, w, restore(t, w, dump))
	worker.WaitForLog("nothing is sent")
	e.WantSilence(t)
	db := w.Open(t)
	e2etest.WaitForCount(t, db, 0, `SELECT count(*) FROM sessions`)
	var state e2etest.Restore
	if w.JSON(&state, "restore", "show"); !state.Active || state.Deliveries != 1 {
		t.Errorf("the state is %+v", state)
	}
	var done e2etest.Released
	w.JSON(&done, "restore", "release", "--deliveries", "cancel", "--mails", "cancel",
		"--reason", "both were sent before the fire")
	if status := e2etest.RequestDraw(t, api.URL, data, "middle"); status != http.StatusOK {
		t.Errorf("the draw after the decision answered %d", status)
	}
	if fresh, _ := e.Next(t).Value("x-drawbridge-delivery"); fresh == uid {
		t.Error("the delivery of before the backup was sent a second time")
	}
}

// exchange replaces one database by another, as when a restored server comes up at the same
// address.
func exchange(t *testing.T, w, restored *e2etest.Harness) {
	t.Helper()
	address, err := url.Parse(w.Env["DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	place, err := url.Parse(restored.Env["DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	from, to := path.Base(place.Path), path.Base(address.Path)
	address.Path = "/postgres"
	server := e2etest.NewOn(t, address.String())
	db := server.Open(t)
	for _, name := range []string{to, from} {
		server.Execute(db, `ALTER DATABASE "`+name+`" ALLOW_CONNECTIONS false`)
		server.Execute(db, `SELECT pg_terminate_backend(pid, 60000)
			  FROM pg_stat_activity WHERE datname = '`+name+`'`)
	}
	for _, change := range [][2]string{{to, from + "_lost"}, {from, to}, {from + "_lost", from}} {
		server.Execute(db, `ALTER DATABASE "`+change[0]+`" RENAME TO "`+change[1]+`"`)
	}
	server.Execute(db, `ALTER DATABASE "`+to+`" ALLOW_CONNECTIONS true`)
}

// TestQuarantineByHand is for a database that was set back in time in place.
func TestQuarantineByHand(t *testing.T) {
	t.Parallel()
	w, e := e2etest.New(t), e2etest.NewEndpoint(t, "200 OK")
	w.Env["SSL_CERT_FILE"] = e.CAFile
	data := w.DemoData()
	w.Subscribe(data, e.URL)
	if got := w.Run("", "restore", "hold", "--reason", "recovered to 09:30"); got.Status != 0 {
		t.Fatalf("ended with %d: %s", got.Status, got.Stderr)
	}
	s := w.Serve()
	e2etest.WantDraw(t, s.URL, data, "first_regular")
	s.WaitForLog("nothing is sent")
	e.WantSilence(t)
	if got := w.Run("", "restore", "show"); !strings.Contains(got.Stdout, "recovered to 09:30") {
		t.Errorf("shows %s", got.Stdout)
	}
	release := func() {
		t.Helper()
		got := w.Run("", "restore", "release", "--deliveries", "cancel", "--mails", "cancel",
			"--reason", "ok")
		if got.Status != 0 {
			t.Fatalf("the release ended with %d: %s", got.Status, got.Stderr)
		}
	}
	release()
	e.Next(t)
	// Running workers stop, too.
	if got := w.Run("", "restore", "hold", "--reason", "look first"); got.Status != 0 {
		t.Fatalf("a hold beside a worker ended with %d: %s", got.Status, got.Stderr)
	}
	s.WaitForLog("the queues rest")
	e2etest.WantDraw(t, s.URL, data, "middle")
	e.WantSilence(t)
	release()
	e.Next(t)
}

// wantUnnoticed checks what commands say about a restored database on which no process has started.
func wantUnnoticed(w *e2etest.Harness) {
	w.T.Helper()
	const say = "the next process that starts holds everything"
	if got := w.Run("", "restore", "show"); got.Status != 0 || !strings.Contains(got.Stdout, say) {
		w.T.Errorf("before the first start it shows %s%s", got.Stdout, got.Stderr)
	}
	got := w.Run("", "restore", "release", "--deliveries", "cancel", "--mails", "cancel",
		"--reason", "too early")
	if got.Status != e2etest.ExitFailed || !strings.Contains(got.Stderr, say) {
		w.T.Errorf("a decision before the first start ended with %d: %s", got.Status, got.Stderr)
	}
}

// serveQuarantined starts the service on a restored database, checks that it is in quarantine, and
// returns how many e-mails are held: those of the demo data.
func serveQuarantined(w *e2etest.Harness, e *e2etest.Endpoint) (*e2etest.Server, int) {
	w.T.Helper()
	s := w.Serve()
	s.WaitForLog("nothing is sent")
	e.WantSilence(w.T)
	var state e2etest.Restore
	w.JSON(&state, "restore", "show")
	if !state.Active || state.Deliveries != 1 || state.Mails == 0 {
		w.T.Errorf("the state is %+v", state)
	}
	return s, state.Mails
}

// backUp makes a backup of the harness's database and returns the file.
func backUp(w *e2etest.Harness) string {
	w.T.Helper()
	file := filepath.Join(w.T.TempDir(), "drawbridge.dump")
	w.Tool("pg_dump", "--format=custom", "--file="+file, w.Env["DATABASE_URL"])
	return file
}

// restore returns a harness with the same settings on a new database.
func restore(t *testing.T, w *e2etest.Harness, dump string) *e2etest.Harness {
	t.Helper()
	restored := e2etest.NewOn(t, pgtest.URL(t))
	address := restored.Env["DATABASE_URL"]
	restored.Env = maps.Clone(w.Env)
	restored.Env["DATABASE_URL"] = address
	db := restored.Open(t)
	_, err := db.ExecContext(t.Context(), `DROP SCHEMA public CASCADE; CREATE SCHEMA public`)
	if err != nil {
		t.Fatal(err)
	}
	restored.Tool("pg_restore", "--no-owner", "--exit-on-error", "--dbname="+address, dump)
	return restored
}
