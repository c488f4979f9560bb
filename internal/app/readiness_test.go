package app_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"drawbridge/internal/app/apptest"
)

// TestReadinessAsksWhichDatabaseItIs: a process that runs finds out that its database was replaced
// by a restored one, or is that of another environment, which it leaves as it is.
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
