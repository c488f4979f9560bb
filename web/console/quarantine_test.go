package console_test

import (
	"net/http"
	"strings"
	"testing"

	"drawbridge/internal/postgres"
	"drawbridge/internal/restore"
	"drawbridge/views/paths"
)

// TestSystemPageTellsOfAQuarantine expects the banner while a quarantine is in force, with
// what it holds back and how to end it, and no longer.
func TestSystemPageTellsOfAQuarantine(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b, guard := r.signedIn(), &restore.Service{DB: r.DB}
	r.subscribe(r.receiver().URL)
	r.publish("Approved")
	if b.get(paths.System).wantStatus(t, http.StatusOK).find("#held").Length() != 0 {
		t.Error("the banner is there although nothing is held")
	}
	r.must(r.DB.InTx(t.Context(), func(tx *postgres.Tx) error {
		return guard.Quarantine(t.Context(), tx, "recovered to <b>09:30</b>")
	}))
	b.get(paths.System).wantStatus(t, http.StatusSeeOther) // everybody is signed out
	b = r.signedIn()
	banner := b.get(paths.System).wantStatus(t, http.StatusOK).text("#held")
	for _, want := range []string{
		"Nothing is sent", "recovered to <b>09:30</b>", "1 delivery and ",
		"drawbridge restore release --deliveries cancel", "drawbridge restore release --deliveries send",
	} {
		if !strings.Contains(banner, want) {
			t.Errorf("the banner does not say %q but %q", want, banner)
		}
	}
	r.must(r.DB.InTx(t.Context(), func(tx *postgres.Tx) error {
		_, err := guard.Release(t.Context(), tx)
		return err
	}))
	if b.get(paths.System).wantStatus(t, http.StatusOK).find("#held").Length() != 0 {
		t.Error("the banner is there after the decision")
	}
}
