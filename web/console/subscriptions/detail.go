package subscriptions

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/a-h/templ"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/diagnose"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/deliveries"
	"drawbridge/views/paths"
	"drawbridge/views/subscriptions"
	"drawbridge/views/ui"
	"drawbridge/web/console/page"
)

const (
	// recentRows is how many deliveries a subscription's page shows.
	recentRows = 15
	// errorDays is the period that the groups of errors cover.
	errorDays = 7 * 24 * time.Hour
)

// show shows one tab of a subscription.
func (f *Feature) show(ctx echo.Context) error {
	return f.showTab(ctx, http.StatusOK, ctx.QueryParam("tab"), subscriptions.SecretTab{})
}

// showTab answers with a tab of a subscription. A secret that was just created is shown once.
func (f *Feature) showTab(
	ctx echo.Context, status int, tab string, secret subscriptions.SecretTab,
) error {
	shown, err := f.tab(ctx, tab, secret)
	if err != nil {
		return err
	}
	if page.IsFragment(ctx) && !page.IsSent(ctx) {
		return page.Render(ctx, status, subscriptions.Region(shown))
	}
	if shown.Tab == subscriptions.TabSecret && !page.IsSent(ctx) {
		secret.New = f.TakeSecret(ctx, f.Webhooks.Subscriptions.Keys, shown.UID.String())
		secret.Snippets = f.Snippets
		shown.Body = f.secretTab(shown.Subscription, secret)
	}
	at := placeOf(shown.Subscription)
	at.Live = shown.Tab == subscriptions.TabActivity
	return f.Show(ctx, status, at, subscriptions.Detail(shown))
}

// secretTab returns what may be shown of a subscription's secret.
func (f *Feature) secretTab(
	s subscription.Subscription, tab subscriptions.SecretTab,
) templ.Component {
	if until := ui.Value(s.PreviousUntil); until.After(f.DB.Now()) {
		tab.PreviousUntil = until
	}
	return subscriptions.Secret(s, tab)
}

// stream streams the activity tab.
func (f *Feature) stream(ctx echo.Context) error {
	return f.Stream(ctx, func(request context.Context) ([]byte, error) {
		shown, err := f.tab(ctx, ctx.QueryParam("tab"), subscriptions.SecretTab{})
		if err != nil {
			return nil, err
		}
		return page.HTML(request, subscriptions.Region(shown))
	})
}

// tab loads a subscription with the data of one tab.
func (f *Feature) tab(
	ctx echo.Context, tab string, secret subscriptions.SecretTab,
) (subscriptions.Page, error) {
	s, err := page.Named(ctx, f.Webhooks.Subscriptions.Get)
	if err != nil {
		return subscriptions.Page{}, err
	}
	request, uid := ctx.Request().Context(), s.UID
	owner, err := f.Partners.Partner(request, s.PartnerUID)
	if err != nil {
		return subscriptions.Page{}, err
	}
	shown := subscriptions.Page{Subscription: s, PartnerName: owner.Name, Tab: tab}
	if !slices.Contains(subscriptions.Tabs, tab) {
		shown.Tab = subscriptions.TabActivity
	}
	if err := f.describe(request, &shown); err != nil {
		return shown, err
	}
	switch shown.Tab {
	case subscriptions.TabConfiguration:
		found, err := f.Partners.MerchantNames(request, s.Merchants)
		var names []string
		for _, merchant := range s.Merchants {
			names = append(names, found[merchant])
		}
		shown.Body = subscriptions.Configuration(s, owner.Name, names)
		return shown, err
	case subscriptions.TabSecret:
		shown.Body = f.secretTab(s, secret)
	case subscriptions.TabVersions:
		shown.Body, err = f.versions(ctx, s)
	case subscriptions.TabHealth:
		lately, err := f.health(request, day, uid)
		if err != nil {
			return shown, err
		}
		probe, changes, err := f.Webhooks.Health.LastProbe(request, uid)
		shown.Body = subscriptions.Health(lately[uid], probe, changes, f.DB.Now())
		return shown, err
	default:
		recent, _, err := f.Webhooks.Deliveries.ListNamed(request,
			delivery.Filter{SubscriptionUID: uid}, postgres.Paging{Limit: recentRows})
		if err != nil {
			return shown, err
		}
		lately, err := f.health(request, errorDays, uid)
		shown.Body = subscriptions.Activity(s, recent, lately[uid].Errors)
		return shown, err
	}
	return shown, err
}

// describe adds the banner, and a link to re-send what was missed.
func (f *Feature) describe(ctx context.Context, shown *subscriptions.Page) error {
	s, uid := shown.Subscription, shown.UID.String()
	if s.State != subscription.StateDeleted {
		shown.Recover = paths.Where(paths.BulkNew, "kind", "recover", "subscription", uid)
		shown.Replay = paths.Where(paths.BulkNew, "kind", "replay", "subscription", uid)
	}
	switch {
	case s.State == subscription.StateDeleted:
		shown.Banner = ui.Diagnosis{
			Tone: ui.Mute, Title: "This subscription was deleted",
			Text: "It receives nothing any more. What it was sent before is kept in its log.",
		}
	case s.Unopened != "":
		shown.Banner = ui.Diagnosis{
			Tone: ui.Bad, Title: "Nothing can be sent: the stored secrets cannot be decrypted",
			Text: s.Unopened + " What falls due waits, and goes out then.",
		}
	case s.OtherKeys() != "":
		shown.Banner = ui.Diagnosis{
			Tone: ui.Bad, Title: "Nothing is sent: a process cannot decrypt the stored secrets",
			Text: s.OtherKeys() + " What falls due waits, and goes out then.",
		}
	case s.State == subscription.StatePaused:
		waiting, err := f.waiting(ctx, s)
		if err != nil {
			return err
		}
		waits, goes := waitingWords(waiting)
		shown.Banner = ui.Diagnosis{
			Tone: ui.Mute, Title: "Paused: nothing is sent",
			Text: waits + ", and " + goes + " out at once when it is resumed.",
		}
	default:
		return f.describeTrouble(ctx, shown)
	}
	return nil
}

// describeTrouble says in plain words how long an endpoint has been failing and with which
// error; nothing if the last attempt succeeded.
func (f *Feature) describeTrouble(ctx context.Context, shown *subscriptions.Page) error {
	found, err := f.health(ctx, time.Hour, shown.UID)
	if err != nil {
		return err
	}
	health, now := found[shown.UID], f.DB.Now()
	bulk := func(name string, since time.Time) string {
		return paths.With(paths.BulkNew, url.Values{
			"subscription": {shown.UID.String()}, name: {since.UTC().Format("2006-01-02T15:04")},
		})
	}
	shown.Replay = bulk("replay_since", now.Add(-day))
	if failure := ui.Value(health.LastFailure); now.Sub(failure) < errorDays {
		since := failure.Add(-day)
		if health.FailingSince != nil {
			since = *health.FailingSince
		}
		if since, err = f.recoverFrom(ctx, shown.UID, since); err != nil {
			return err
		}
		shown.Recover = bulk("recover_since", since)
	}
	if health.FailingSince == nil {
		return nil
	}
	outcome := ui.OutcomeWord(health.LastStatus, string(health.LastClass)) + ": " +
		ui.Plural(health.ConsecutiveFailures, "failure", "failures")
	moves, err := subscription.Moves(ctx, f.DB, shown.UID)
	if err != nil {
		return err
	}
	if move := moves[shown.UID]; move.Untried {
		shown.Banner = ui.Diagnosis{
			Tone: ui.Warn, Title: "Not tried since its URL was changed", Since: move.At,
			Text: "The former URL failed until then (" + outcome + "). The next delivery, or a test " +
				"event, shows whether this one works.",
		}
		return nil
	}
	why := diagnose.Attempt(delivery.Attempt{
		HTTPStatus: health.LastStatus, ErrorClass: health.LastClass, Error: health.LastError,
		RequestHeaders: sender.Credentials(shown.Auth, shown.Headers),
	})
	shown.Banner = ui.Diagnosis{
		Tone: ui.Warn, Text: why.Summary, Owner: string(why.Owner), Next: why.Next,
		Title: outcome + ", the first", Since: *health.FailingSince,
	}
	if shown.State == subscription.StateFailing {
		shown.Banner.Tone = ui.Bad
	}
	return nil
}

// recoverFrom returns where a recovery of all failures since `since` must start: it goes by
// creation time, and a delivery that failed then may have been created long before.
func (f *Feature) recoverFrom(
	ctx context.Context, uid uuid.UUID, since time.Time,
) (time.Time, error) {
	since = since.Truncate(time.Minute) // the precision of the form
	return f.oldest.Get(failing{uid, since}, func() (time.Time, error) {
		oldest, err := f.Webhooks.Deliveries.OldestFailed(ctx, uid, since, deliveries.MaxFailures)
		if oldest.IsZero() || oldest.After(since) {
			oldest = since
		}
		return oldest, err
	})
}

// versions lists the versions, and compares the two that the address names.
func (f *Feature) versions(ctx echo.Context, s subscription.Subscription) (templ.Component, error) {
	request := ctx.Request().Context()
	versions, err := f.Webhooks.Subscriptions.Versions(request, s.UID)
	if err != nil {
		return nil, err
	}
	var compared subscriptions.Comparison
	compared.From, _ = strconv.Atoi(ctx.QueryParam("from")) // 0 compares nothing
	compared.To, _ = strconv.Atoi(ctx.QueryParam("to"))
	if compared.From == 0 || compared.To == 0 {
		compared.From, compared.To = max(s.Version-1, 1), s.Version
	}
	diff, err := f.Webhooks.Subscriptions.CompareVersions(request, s.UID, compared.From, compared.To)
	if err != nil {
		return nil, err
	}
	compared.Rows, err = f.differences(request, diff.Changes)
	return subscriptions.Versions(s, versions, compared), err
}
