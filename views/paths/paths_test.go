package paths_test

import (
	"net/url"
	"testing"

	"drawbridge/views/paths"
)

func TestPathsEscape(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		paths.To(paths.Delivery, "../x?y"): "/console/deliveries/..%2Fx%3Fy",
		paths.To(paths.PersonSession, "a b",
			":uid"): "/console/people/a%20b/sessions/:uid/end",
		paths.ToID(paths.AuditEntry, 7):                            "/console/audit/7",
		paths.With(paths.Deliveries, nil):                          "/console/deliveries",
		paths.With(paths.Deliveries, url.Values{"state": {"x y"}}): "/console/deliveries?state=x+y",
		paths.Where(paths.Deliveries, "application",
			"a&b=c"): "/console/deliveries?application=a%26b%3Dc",
		paths.Within("u", "draw", "7"):       "/console/applications/u?draw=7#draw-7",
		paths.SubscriptionTab("u", "health"): "/console/subscriptions/u?tab=health",
		paths.JobsOf("", "webhook"):          "/console/queues/river/jobs?queue=webhook",
		paths.JobsOf("", ""):                 "/console/queues/river/jobs",
	} {
		if got != want {
			t.Errorf("path = %q, want %q", got, want)
		}
	}
}
