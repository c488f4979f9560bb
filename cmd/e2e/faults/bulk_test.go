package faults

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
)

// TestFaultBulkUnderKills sends many failed deliveries again while the processes that do it
// are killed: each is sent again exactly once, with at most three attempts and never two
// under one number, and the progress that is shown agrees with their outcomes.
func TestFaultBulkUnderKills(t *testing.T) {
	t.Parallel()
	total, kills := int(scaled(400, 50_000)), int(scaled(3, 20))
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 3))
	r := newRecordingReceiver(t, seed)
	w := e2etest.New(t)
	data := w.DemoData()
	made := w.Subscribe(data, r.url, "--event", "task.created", "--auth", "none")
	w.FailedDeliveries(data, made.UID, total)
	workers := []*e2etest.Server{w.Serve("--roles", "worker"), w.Serve("--roles", "worker")}
	var bulk e2etest.BulkDetail
	w.JSON(&bulk, "bulk", "create", "--recover", "--subscription", made.UID.String(), "--since",
		time.Now().Add(-2*time.Hour).UTC().Format(time.RFC3339), "--pace", "500")
	began := time.Now()
	w.JSON(&bulk, "bulk", "confirm", bulk.UID.String(), "--reason", "outage",
		"--count", strconv.Itoa(total))
	for i := range kills {
		point := (i + chance.IntN(2)) * total / (kills + 1)
		waittest.Within(t, 10*time.Minute, "the re-send has moved on", func() bool {
			return r.deliveries() >= point
		})
		at := i % len(workers)
		workers[at].Kill()
		workers[at] = w.Serve("--roles", "worker")
	}
	db := w.Open(t)
	waittest.Within(t, 20*time.Minute, "the re-send is finished", func() bool {
		return pgtest.Count(t, db, `SELECT count(*) FROM bulk_resends WHERE state = 'finished'`) == 1
	})
	took := time.Since(began)
	w.JSON(&bulk, "bulk", "show", bulk.UID.String())
	if again := pgtest.Count(t, db, `
		SELECT count(DISTINCT resend_of) FROM deliveries WHERE resend_of IS NOT NULL`); again != total {
		t.Errorf("%d of %d deliveries were sent again", again, total)
	}
	var resent []string
	err := db.SelectContext(t.Context(), &resent,
		`SELECT delivery_uid FROM deliveries WHERE resend_of IS NOT NULL`)
	if err != nil {
		t.Fatal(err)
	}
	ledger, found := readLedger(t, db), faultTally{events: total, accepted: len(resent)}
	for _, uid := range resent {
		found.check(t, ledger[uid], r.of(uid))
	}
	if len(resent) != total || r.overlaps > 0 {
		t.Errorf("%d deliveries were made of %d, and %d requests overlapped",
			len(resent), total, r.overlaps)
	}
	shown := bulk.Counts
	if shown.Delivered != found.delivered || shown.Failed != found.failed ||
		shown.Waiting+shown.Sent+shown.Cancelled+shown.Skipped > 0 {
		t.Errorf("the re-send shows %+v, and there are %+v", shown, found)
	}
	t.Logf("%d kills in %s: %+v", kills, took.Round(time.Second), found)
}
