package webhooktest

import (
	"testing"

	"drawbridge/internal/postgres"
)

// Another is a second process on the same database.
func (h *Harness) Another(t testing.TB) *Services {
	t.Helper()
	db, err := postgres.Open(t.Context(), h.DB.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	second := NewServices(t, db, h.Clock)
	second.Subscriptions.Keys = h.Subscriptions.Keys
	return second
}

// WorkWith delivers what is in the queue, the services taking turns.
func (h *Harness) WorkWith(t testing.TB, services ...*Services) {
	t.Helper()
	turn := 0
	for jobs := h.Jobs(t); len(jobs) > 0; jobs = h.Jobs(t) {
		for _, job := range jobs {
			if err := services[turn%len(services)].Deliveries.Deliver(t.Context(), job, First); err != nil {
				t.Fatal(err)
			}
			turn++
		}
	}
}
