package console

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/webhook"
	"drawbridge/views/paths"
	"drawbridge/views/subscriptions"
	"drawbridge/views/ui"
)

// errorDays is the time that the groups of errors cover.
const errorDays = 7 * 24 * time.Hour

// dayOf is the health of the listed subscriptions over the last 24 hours.
func (c *Console) dayOf(
	ctx context.Context, summaries []webhook.SubscriptionSummary,
) (map[uuid.UUID]webhook.Health, error) {
	uids := make([]uuid.UUID, 0, len(summaries))
	for _, summary := range summaries {
		uids = append(uids, summary.UID)
	}
	now := c.DB.Now()
	return c.Webhooks.Health(ctx, uids, now.Add(-recent+time.Hour), now)
}

// bulkLink leads to the bulk re-send that recovers or replays what happened
// since a time.
func bulkLink(uid, name string, since time.Time) string {
	query := url.Values{
		"subscription": {uid}, name: {since.UTC().Format("2006-01-02T15:04")},
	}
	return paths.BulkNew + "?" + query.Encode()
}

func healthView(h webhook.Health) subscriptions.HealthView {
	view := subscriptions.HealthView{
		P50: h.P50(), P95: h.P95(), Attempts: h.Attempts, LastSuccess: value(h.LastSuccess),
	}
	if rate, known := h.SuccessRate(); known {
		view.Rate = fmt.Sprintf("%.1f %%", 100*rate)
	}
	for _, hour := range h.Hours {
		view.Hours = append(view.Hours, subscriptions.HealthHour{
			Start: hour.Start, Succeeded: hour.Succeeded, Failed: hour.Attempts - hour.Succeeded,
			P95: hour.Latency.Percentile(0.95),
		})
	}
	return view
}

// healthOf is the health of one subscription since a time.
func (c *Console) healthOf(
	ctx context.Context, uid uuid.UUID, since time.Duration,
) (webhook.Health, error) {
	now := c.DB.Now()
	found, err := c.Webhooks.Health(ctx, []uuid.UUID{uid}, now.Add(-since+time.Hour), now)
	return found[uid], err
}

// describeTrouble says in plain words how long an endpoint has failed and with
// what; nothing while the last attempt succeeded.
func (c *Console) describeTrouble(
	ctx context.Context, page *subscriptions.SubscriptionPage, s webhook.Subscription,
) error {
	health, err := c.healthOf(ctx, s.UID, time.Hour)
	if err != nil {
		return err
	}
	page.Replay = bulkLink(page.UID, "replay_since", c.DB.Now().Add(-recent))
	if failure := value(health.LastFailure); c.DB.Now().Sub(failure) < errorDays {
		since := failure.Add(-recent)
		if health.FailingSince != nil {
			since = *health.FailingSince
		}
		page.Recover = bulkLink(page.UID, "recover_since", since)
	}
	if health.FailingSince == nil {
		return nil
	}
	why := webhook.Diagnose(webhook.AttemptRecord{
		HTTPStatus: health.LastStatus, ErrorClass: health.LastClass, Error: health.LastError,
	})
	page.Banner = ui.Diagnosis{
		Tone: ui.Warn, Text: why.Summary, Owner: string(why.Owner), Next: why.Next,
		Title: ui.OutcomeWord(health.LastStatus, string(health.LastClass)) + ": " +
			counted(health.ConsecutiveFailures, "failure", "failures"),
		Since: *health.FailingSince,
	}
	if s.State == webhook.StateFailing {
		page.Banner.Tone = ui.Bad
	}
	return nil
}

// activity is what was sent lately, and what went wrong.
func (c *Console) activity(
	ctx context.Context, s webhook.Subscription,
) (subscriptions.SubscriptionActivity, error) {
	loaded, err := c.Webhooks.Deliveries(ctx, webhook.DeliveryFilter{
		SubscriptionUID: s.UID, Limit: recentRows,
	})
	if err != nil {
		return subscriptions.SubscriptionActivity{}, err
	}
	health, err := c.healthOf(ctx, s.UID, errorDays)
	if err != nil {
		return subscriptions.SubscriptionActivity{}, err
	}
	shown := subscriptions.SubscriptionActivity{Rows: deliveryRows(loaded.Deliveries)}
	for _, group := range health.Errors {
		query := url.Values{"subscription": {s.UID.String()}}
		shown.Groups = append(shown.Groups, subscriptions.ErrorGroup{
			HTTPStatus: group.Status, ErrorClass: string(group.Class), Count: group.Count,
			First: group.First, Last: group.Last, Href: paths.With(paths.Deliveries, query),
		})
	}
	return shown, nil
}

// healthTab is how sending goes, and what the probes find.
func (c *Console) healthTab(
	ctx context.Context, s webhook.Subscription,
) (subscriptions.HealthTab, error) {
	health, err := c.healthOf(ctx, s.UID, recent)
	if err != nil {
		return subscriptions.HealthTab{}, err
	}
	probe, changes, err := c.Webhooks.LastProbe(ctx, s.UID)
	if err != nil {
		return subscriptions.HealthTab{}, err
	}
	tab := subscriptions.HealthTab{HealthView: healthView(health)}
	tab.Probe = probeView(probe, c.DB.Now())
	for _, change := range changes {
		tab.Probe.Changes = append(tab.Probe.Changes,
			subscriptions.ProbeChange{
				At:      change.At,
				Finding: strings.TrimSuffix(sentence(change.Finding), "."),
			})
	}
	return tab, nil
}

func probeView(p webhook.ProbeRecord, now time.Time) subscriptions.ProbeView {
	view := subscriptions.ProbeView{
		At: p.At, Next: p.NextAt, Expires: p.Expires, Issuer: p.Issuer, TLS: p.TLSVersion,
		Took: p.Timings.Total,
	}
	if p.Address.IsValid() {
		view.Address = p.Address.String()
	}
	item := subscriptions.CheckItem{
		Tone: ui.Good, Title: "Reachable", Text: "A delivery would get through to it.",
	}
	if p.Class != "" {
		item = subscriptions.CheckItem{
			Tone: ui.Bad, Title: "Not reachable as it should be", Text: sentence(p.Error),
		}
	}
	view.Check.Items = append(view.Check.Items, item)
	if days := webhook.CertificateWarning(p.Expires, now); !p.Expires.IsZero() && days != 0 {
		item = subscriptions.CheckItem{
			Tone: ui.Warn, Title: "The certificate ends soon",
			Text: fmt.Sprintf("It is valid for less than %s.", counted(days, "day", "days")),
		}
		if days < 0 {
			item = subscriptions.CheckItem{Tone: ui.Bad, Title: "The certificate has expired"}
		}
		view.Check.Items = append(view.Check.Items, item)
	}
	return view
}
