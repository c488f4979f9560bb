package console_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/paths"
)

// amend changes a subscription.
func (r *harness) amend(uid uuid.UUID, patch subscription.Patch) {
	r.Helper()
	r.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, _, err := r.Webhooks.Subscriptions.Amend(ctx, tx, uid, patch, "test")
		return err
	})
}

// TestSubscriptionsAreToldApart gives two subscriptions of one host different names and
// expects the name wherever one of them is shown.
func TestSubscriptionsAreToldApart(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	const name = "Funding ledger"
	server := r.receiver(status(http.StatusServiceUnavailable))
	other, _ := r.subscribe(server.URL + "/other")
	made, _ := r.subscribe(server.URL + "/ledger")
	for uid, called := range map[uuid.UUID]string{other.UID: "Reports", made.UID: name} {
		r.amend(uid, subscription.Patch{Name: &called})
	}
	r.useUp("Approved")
	b := r.asOperator()
	uid := made.UID.String()
	failed := ""
	for _, d := range r.list() {
		if d.SubscriptionUID == made.UID {
			failed = d.UID.String()
		}
	}
	bulk := b.begin(url.Values{"delivery": {failed}})
	for _, test := range []struct{ what, path, selector string }{
		{"list of subscriptions", paths.Subscriptions, "main tbody"},
		{"title", paths.To(paths.Subscription, uid), "title"},
		{"heading", paths.To(paths.Subscription, uid), "h1"},
		{"crumb", paths.To(paths.SubscriptionEdit, uid), "nav[aria-label=Breadcrumb]"},
		{"list of deliveries", paths.Deliveries, "#d-" + failed[24:]},
		{"delivery", paths.To(paths.Delivery, failed), ".page-title"},
		{"alert", paths.Alerts, "main tbody"},
		{"failures", paths.To(paths.Failures, uid), "nav[aria-label=Breadcrumb]"},
		{"bulk re-send", bulk, "main"},
		{"re-send", paths.To(paths.Resend, failed), ".resend-to"},
		{"pausing", paths.To(paths.SubscriptionPause, uid), ".resend-to"},
		{"rotating", paths.To(paths.SubscriptionRotate, uid), ".resend-to"},
		{"test event", paths.To(paths.SubscriptionTest, uid), ".resend-to"},
		{"deleting", paths.To(paths.SubscriptionDelete, uid), ".resend-to"},
		{
			"why", paths.Where(paths.Why, "q", r.application.String(), "event",
				"application.status.update"), "#answer .ledger",
		},
	} {
		page := b.get(test.path).wantStatus(t, http.StatusOK)
		if got := page.text(test.selector); !strings.Contains(got, name) {
			t.Errorf("%s says %q, want the name %q", test.what, got, name)
		}
	}
}
