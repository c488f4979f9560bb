package app_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/postgres/pgtest"
)

// TestReadinessAsksWhichDatabaseItIs: a running process finds out that its database was replaced by
// a restored one, or belongs to another environment, and then leaves it as it is.
func TestReadinessAsksWhichDatabaseItIs(t *testing.T) {
	t.Parallel()
	h := apptest.New(t)
	options, err := h.WebOptions()
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name, change, gap      string
		held, copied, signedIn bool
	}{
		{name: "at first", signedIn: true},
		{name: "restored", change: `UPDATE installation SET identity = 'another'`, held: true},
		{
			name:   "restored from another environment",
			change: `UPDATE installation SET identity = 'another', environment = 'sandbox'`,
			gap:    "the database is that of a sandbox service", held: true, copied: true, signedIn: true,
		},
		{
			name: "of its own environment again",
			change: `UPDATE installation
			            SET environment = 'development', held_at = NULL, held_reason = NULL`,
			held: true,
		},
	} {
		h.Exec(t, `INSERT INTO sessions (token, data, expiry) VALUES ('x', '', now())`)
		if step.change != "" {
			h.Exec(t, step.change)
		}
		gaps := strings.Join(options.Ready(httptest.NewRequestWithContext(t.Context(),
			http.MethodGet, "/readyz", http.NoBody)), "; ")
		if (gaps == "") != (step.gap == "") || !strings.Contains(gaps, step.gap) {
			t.Errorf("%s: it lacks %q, want %q", step.name, gaps, step.gap)
		}
		state, err := h.Restored.State(t.Context())
		if err != nil || state.IsQuarantined() != step.held || state.Copied != step.copied {
			t.Errorf("%s: the state is %+v, %v", step.name, state, err)
		}
		if got := h.Count(t, `SELECT count(*) FROM sessions`) > 0; got != step.signedIn {
			t.Errorf("%s: somebody is signed in: %t", step.name, got)
		}
		h.Exec(t, `DELETE FROM sessions`)
	}
}

// TestProbesShareALook: the readiness check is open to anyone. Many concurrent ones cost little,
// and one whose client leaves still gets the right result, and so do the metrics.
func TestProbesShareALook(t *testing.T) {
	t.Parallel()
	h := apptest.New(t)
	options, err := h.WebOptions()
	if err != nil {
		t.Fatal(err)
	}
	ask := func(ctx context.Context) {
		if gaps := options.Ready(httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz",
			http.NoBody)); len(gaps) > 0 {
			t.Errorf("it lacks %q", gaps)
		}
	}
	ask(t.Context()) // settles what is checked only once
	queries := pgtest.Record(t, h.DB)
	locked := h.DB.MustBeginTx(t.Context(), nil)
	locked.MustExec(`LOCK TABLE installation IN ACCESS EXCLUSIVE MODE`)
	gone, leave := context.WithCancel(t.Context())
	var asking, begun sync.WaitGroup
	asking.Go(func() { ask(gone) })
	pgtest.WaitForLock(t, h.DB)
	leave()
	const askers = 50
	begun.Add(askers)
	for range askers {
		asking.Go(func() {
			begun.Done()
			ask(t.Context())
		})
	}
	begun.Wait()
	if err := locked.Rollback(); err != nil {
		t.Fatal(err)
	}
	asking.Wait()
	looks := 0
	for _, query := range queries.Take() {
		if strings.Contains(query.Text, "pg_is_in_recovery() OR") {
			looks++
		}
	}
	if looks > askers/2 {
		t.Errorf("%d who asked at once cost %d looks", askers, looks)
	}
}
