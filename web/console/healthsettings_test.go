package console_test

import (
	"net/http"
	"testing"

	"drawbridge/internal/webhook/health"
	"drawbridge/views/paths"
)

func TestFailingThresholdsAreSet(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.asOperator().get(paths.SettingsHealth).wantStatus(t, http.StatusForbidden)
	b := r.admin()
	wrong, _ := b.fillIn(paths.SettingsHealth, map[string]string{
		"failing_minutes": "1", "failing_events": "many",
	})
	wrong.wantStatus(t, http.StatusBadRequest)
	if text := wrong.text("main"); !containsAll(text, []string{
		"whole number", "Minutes without a success must be from",
	}) {
		t.Errorf("a wrong form says %q", text)
	}
	saved, values := b.fillIn(paths.SettingsHealth, map[string]string{
		"failing_minutes": "120", "failing_events": "5",
	})
	b.get(saved.wantStatus(t, http.StatusSeeOther).Location).wantStatus(t, http.StatusOK)
	b.post(paths.SettingsHealth, values).wantStatus(t, http.StatusSeeOther)
	got, err := r.Webhooks.Health.LoadSettings(t.Context())
	want := health.Settings{FailingMinutes: 120, FailingEvents: 5}
	if err != nil || got != want {
		t.Errorf("stored %+v, %v; want %+v", got, err, want)
	}
	if r.audits("health_settings.update") != 1 {
		t.Error("the change is not in the audit log once")
	}
}
