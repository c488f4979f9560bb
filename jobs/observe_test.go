package jobs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
	"drawbridge/jobs"
)

type trialArgs struct {
	How string `json:"how"`
}

func (trialArgs) Kind() string { return "trial" }

var trials = map[string]func() error{
	"fails":     func() error { return errors.New("out of paper") },
	"panics":    func() error { panic("out of ink") },
	"done":      func() error { return nil },
	"put off":   func() error { return river.JobSnooze(time.Hour) },
	"cancelled": func() error { return river.JobCancel(errors.New("nothing to do")) },
}

// It captures the log of the whole process, so no other test may run alongside it.
//
//nolint:paralleltest // see above
func TestFailuresAreLogged(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	outcomes := work(t)
	wanted := map[jobs.Outcome]int{
		jobs.OutcomeError: 2, jobs.OutcomeDone: 1, jobs.OutcomePutOff: 1, jobs.OutcomeCancelled: 1,
	}
	if !maps.Equal(outcomes, wanted) {
		t.Errorf("outcomes %v, want %v", outcomes, wanted)
	}
	said := map[string]string{}
	for line := range strings.Lines(log.String()) {
		var entry struct {
			Level, Msg, Kind, Error, Trace string
			JobID                          int64 `json:"job_id"`
			Attempt                        int
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		if entry.Level != "ERROR" {
			continue
		}
		if said[entry.Msg] != "" || entry.Kind != "trial" || entry.JobID == 0 || entry.Attempt != 1 ||
			strings.Contains(entry.Trace, "observe_test.go") != (entry.Msg == "job panicked") {
			t.Errorf("a line too many, or one that tells too little: %s", line)
		}
		said[entry.Msg] = entry.Error
	}
	wantSaid := map[string]string{
		"job failed": "out of paper", "job panicked": "panic: out of ink",
	}
	if !maps.Equal(said, wantSaid) {
		t.Errorf("the log has %v, want %v", said, wantSaid)
	}
}

// work runs every trial once, and counts the observed outcomes of the runs.
func work(t *testing.T) map[jobs.Outcome]int {
	t.Helper()
	db := pgtest.New(t)
	pool, err := pgxpool.New(t.Context(), db.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	runs := make(chan jobs.Run, len(trials))
	config := jobs.Config(jobs.Deps{
		DB: db, WebhookTimeout: time.Second, Observe: func(run jobs.Run) { runs <- run },
	})
	config.PeriodicJobs = nil
	river.AddWorker(config.Workers, river.WorkFunc(
		func(_ context.Context, job *river.Job[trialArgs]) error { return trials[job.Args.How]() }))
	client, err := river.NewClient(riverpgxv5.New(pool), config)
	if err != nil {
		t.Fatal(err)
	}
	for how := range trials {
		opts := &river.InsertOpts{MaxAttempts: 1}
		if _, err := client.Insert(t.Context(), trialArgs{how}, opts); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	outcomes := map[jobs.Outcome]int{}
	for range trials {
		outcomes[waittest.Receive(t, "a run", runs).Outcome]++
	}
	if err := client.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	return outcomes
}
