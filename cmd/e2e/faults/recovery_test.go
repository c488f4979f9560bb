package faults

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/secret"
	"drawbridge/internal/waittest"
)

// archived is a server that archives its write-ahead log, and the archive's folder.
func archived(t *testing.T) (*ownPostgres, string) {
	t.Helper()
	pg := newOwnPostgres(t)
	archive := pg.owned(func(string) {})
	query(t, pg.url(), "ALTER SYSTEM SET archive_mode = on")
	query(t, pg.url(), fmt.Sprintf(
		"ALTER SYSTEM SET archive_command = "+
			"'test ! -f %[1]s/%%f && cp %%p %[1]s/%%f.part && mv %[1]s/%%f.part %[1]s/%%f'", archive))
	pg.stop(syscall.SIGINT)
	pg.start()
	return pg, archive
}

// query runs a statement on a server over a new connection.
func query(t *testing.T, address, statement string) {
	t.Helper()
	db, err := postgres.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// TestPointInTimeRecovery follows the manual: a base backup, the archive of the write-ahead log,
// and a server that is recovered to the moment before somebody's mistake. Changes confirmed until
// then exist, later ones do not, and nothing is sent a second time.
func TestPointInTimeRecovery(t *testing.T) {
	t.Parallel()
	pg, archive := archived(t)
	w, e := e2etest.NewOn(t, pg.url()), e2etest.NewEndpoint(t, "200 OK")
	w.Env["SSL_CERT_FILE"], w.Env["DRAWBRIDGE_SECRETS_KEY"] = e.CAFile, secret.GenerateKey()
	data := w.DemoData()
	w.Subscribe(data, e.URL)
	all := w.Serve()
	base := pg.copied()
	e2etest.WantDraw(t, all.URL, data, "first_regular")
	first, _ := e.Next(t).Value("x-drawbridge-delivery")
	w.WaitForState(first, "delivered")
	all.Stop()
	api := w.Serve("--roles", "api")
	e2etest.WantDraw(t, api.URL, data, "middle") // still waiting at the recovery target
	api.Stop()
	db := w.Open(t)
	moment := pgtest.Value[string](t, db, `SELECT clock_timestamp()::text`)
	worker := w.Serve("--roles", "worker")
	waited, _ := e.Next(t).Value("x-drawbridge-delivery")
	w.WaitForState(waited, "delivered")
	worker.Stop()
	w.JSON(new(any), "partner", "create", "--name", "Made By Mistake")
	segment := pgtest.Value[string](t, db, `SELECT pg_walfile_name(pg_switch_wal())`)
	waittest.Within(t, time.Minute, "the log is archived", func() bool {
		_, err := os.Stat(filepath.Join(archive, segment))
		return err == nil
	})
	_ = db.Close()

	pg.signal(base, "recovery.signal")
	began := time.Now()
	recovered := pg.started(base, "--archive_mode=off",
		"--restore_command=cp "+archive+"/%f %p", "--recovery_target_time="+moment,
		"--recovery_target_action=promote")
	pg.stop(syscall.SIGQUIT) // the old server must get no more writes
	waittest.Within(t, 2*time.Minute, "the server is recovered", func() bool {
		db, err := postgres.Open(t.Context(), recovered)
		if err != nil {
			return false
		}
		defer db.Close()
		why, err := db.Unwritable(t.Context())
		return err == nil && why == ""
	})
	t.Logf("recovered after %s", time.Since(began).Round(time.Millisecond))
	w.Env["DATABASE_URL"] = recovered
	quarantinesWhatWaited(t, w, e, data, first, waited)
}

// quarantinesWhatWaited checks the recovered database as the manual says.
func quarantinesWhatWaited(
	t *testing.T, w *e2etest.Harness, e *e2etest.Endpoint, data e2etest.Demo, deliveries ...string,
) {
	t.Helper()
	if got := w.Run("", "restore", "hold", "--reason", "recovered"); got.Status != 0 {
		t.Fatalf("ended with %d: %s", got.Status, got.Stderr)
	}
	s := w.Serve()
	s.WaitForLog("nothing is sent")
	e.WantSilence(t)
	db := w.Open(t)
	e2etest.WaitForCount(t, db, 0, `SELECT count(*) FROM partners WHERE name = 'Made By Mistake'`)
	var done e2etest.Released
	w.JSON(&done, "restore", "release", "--deliveries", "cancel", "--mails", "cancel",
		"--reason", "sent before the recovery")
	if done.CancelledDeliveries != 1 {
		t.Errorf("cancelled %+v, want the one delivery that waited", done)
	}
	w.WaitForState(deliveries[0], "delivered")
	w.WaitForState(deliveries[1], "cancelled")
	// The draw from before the target is still pending, so another one is refused.
	status := e2etest.RequestDraw(t, s.URL, data, "middle")
	if status != http.StatusInternalServerError {
		t.Errorf("a second draw on the loan answered %d", status)
	}
	e.WantSilence(t)
}
