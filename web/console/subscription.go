package console

import (
	"context"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/webhook"
	"drawbridge/views/paths"
	"drawbridge/views/subscriptions"
	"drawbridge/views/ui"
)

const (
	// recentRows is how many deliveries a subscription's page shows.
	recentRows = 15
	// maxWaiting is the highest count of deliveries that wait.
	maxWaiting = 10_000
)

// subscription shows one subscription, one tab of it.
func (c *Console) subscription(ctx echo.Context) error {
	page, subscription, err := c.subscriptionPage(ctx)
	if err != nil {
		return err
	}
	if isFragment(ctx.Request()) {
		return render(ctx, http.StatusOK, subscriptions.SubscriptionRegion(page))
	}
	if page.Tab == subscriptions.TabSecret {
		page.Secret.New = c.takeSecret(ctx, page.UID)
		page.Secret.Snippets = c.Snippets
	}
	return c.showSubscription(ctx, http.StatusOK, page, subscription)
}

// showSubscription answers with the whole page.
func (c *Console) showSubscription(
	ctx echo.Context, status int, page subscriptions.SubscriptionPage, s webhook.Subscription,
) error {
	var err error
	page.Frame, err = c.frame(ctx, ui.SectionSubscriptions, ui.HostOf(s.URL),
		ui.Crumb{Label: "Subscriptions", Href: paths.Subscriptions},
		ui.Crumb{Label: ui.HostOf(s.URL)})
	if err != nil {
		return err
	}
	page.Live = page.StreamURL != ""
	page.Notice = c.takeNotice(ctx)
	return render(ctx, status, subscriptions.SubscriptionDetailPage(page))
}

// subscriptionLive streams the activity as it changes.
func (c *Console) subscriptionLive(ctx echo.Context) error {
	if _, err := pathUID(ctx); err != nil {
		return err
	}
	return c.stream(ctx, func(context.Context) ([]byte, error) {
		page, _, err := c.subscriptionPage(ctx)
		if err != nil {
			return nil, err
		}
		return renderHTML(ctx.Request().Context(), subscriptions.SubscriptionRegion(page))
	})
}

// subscriptionPage loads a subscription with what the tab in the address shows.
func (c *Console) subscriptionPage(
	ctx echo.Context,
) (subscriptions.SubscriptionPage, webhook.Subscription, error) {
	return c.subscriptionPageOf(ctx, ctx.QueryParam("tab"))
}

// subscriptionPageOf loads a subscription with what one tab shows.
func (c *Console) subscriptionPageOf(
	ctx echo.Context, tab string,
) (subscriptions.SubscriptionPage, webhook.Subscription, error) {
	request := ctx.Request().Context()
	uid, err := pathUID(ctx)
	if err != nil {
		return subscriptions.SubscriptionPage{}, webhook.Subscription{}, err
	}
	s, err := c.Webhooks.Subscription(request, uid)
	if err != nil {
		return subscriptions.SubscriptionPage{}, s, err
	}
	owner, err := c.Partners.Partner(request, s.PartnerUID)
	if err != nil {
		return subscriptions.SubscriptionPage{}, s, err
	}
	page := subscriptions.SubscriptionPage{
		UID: uid.String(), PartnerUID: s.PartnerUID.String(), PartnerName: owner.Name, URL: s.URL,
		State: string(s.State), Version: s.Version, MayChange: mayChange(ctx),
	}
	if s.State != webhook.StateDeleted {
		page.Recover = paths.Where(paths.BulkNew, "kind", "recover", "subscription", page.UID)
		page.Replay = paths.Where(paths.BulkNew, "kind", "replay", "subscription", page.UID)
	}
	page.Tab, page.Tabs = subscriptionPageTabs(page.UID, tab)
	if err := c.describeState(request, &page, s); err != nil {
		return page, s, err
	}
	switch page.Tab {
	case subscriptions.TabConfiguration:
		page.Configuration, err = c.configuration(request, s)
	case subscriptions.TabSecret:
		page.Secret = secretTab(s, c.DB.Now())
	case subscriptions.TabVersions:
		page.Versions, err = c.versionsTab(ctx, s)
	case subscriptions.TabHealth:
		page.Health, err = c.healthTab(request, s)
	default:
		page.StreamURL = paths.To(paths.SubscriptionLive, page.UID)
		page.PollURL = paths.SubscriptionTab(page.UID, subscriptions.TabActivity)
		page.Activity, err = c.activity(request, s)
	}
	return page, s, err
}

// subscriptionPageTabs are the tabs of the page; an unknown one is the first.
func subscriptionPageTabs(uid, wanted string) (current string, tabs []ui.Tab) {
	current = subscriptions.TabActivity
	for _, tab := range []struct{ name, label string }{
		{subscriptions.TabActivity, "Activity"},
		{subscriptions.TabConfiguration, "Configuration"},
		{subscriptions.TabSecret, "Secret"},
		{subscriptions.TabHealth, "Health"},
		{subscriptions.TabVersions, "Versions"},
	} {
		tabs = append(tabs, ui.Tab{
			Label: tab.label, Href: paths.SubscriptionTab(uid, tab.name), Current: tab.name == wanted,
		})
		if tab.name == wanted {
			current = wanted
		}
	}
	tabs[0].Current = current == subscriptions.TabActivity
	return current, tabs
}

// describeState adds the banner and what can be recovered.
func (c *Console) describeState(
	ctx context.Context, page *subscriptions.SubscriptionPage, s webhook.Subscription,
) error {
	waiting, err := c.waiting(ctx, s)
	if err != nil {
		return err
	}
	page.Waiting = ui.Number(waiting)
	if s.Unopened != "" && s.State != webhook.StateDeleted {
		page.Banner = ui.Diagnosis{
			Tone: ui.Bad, Title: "Nothing can be sent: what is stored does not open",
			Text: s.Unopened + " What falls due waits, and goes out then.",
		}
		return nil
	}
	switch s.State {
	case webhook.StateDeleted:
		page.Banner = ui.Diagnosis{
			Tone: ui.Mute, Title: "This subscription was deleted",
			Text: "It receives nothing any more. What it was sent before is kept in its log.",
		}
		return nil
	case webhook.StatePaused:
		page.Banner = ui.Diagnosis{
			Tone: ui.Mute, Title: "Paused: nothing is sent",
			Text: fmt.Sprintf("%s, and %s out at once when it is resumed.",
				waitingWords(waiting), goes(waiting)),
		}
	case webhook.StateActive, webhook.StateFailing:
		return c.describeTrouble(ctx, page, s)
	}
	return nil
}

func waitingWords(waiting int) string {
	switch {
	case waiting == 0:
		return "Nothing waits so far; what falls due is held back"
	case waiting > maxWaiting:
		return "More than " + ui.Number(maxWaiting) + " deliveries wait"
	case waiting == 1:
		return "1 delivery waits"
	}
	return ui.Number(waiting) + " deliveries wait"
}

func goes(waiting int) string {
	if waiting == 1 {
		return "goes"
	}
	return "go"
}

// waiting counts what has not gone out, at most one more than maxWaiting.
func (c *Console) waiting(ctx context.Context, s webhook.Subscription) (int, error) {
	total := 0
	for _, state := range []webhook.DeliveryState{
		webhook.DeliveryPending, webhook.DeliveryRetrying,
	} {
		count, err := c.Webhooks.CountDeliveries(ctx, webhook.DeliveryFilter{
			SubscriptionUID: s.UID, State: state,
		}, maxWaiting+1)
		if err != nil {
			return 0, err
		}
		total += count
	}
	return min(total, maxWaiting+1), nil
}

// configuration is what the subscription sends and how.
func (c *Console) configuration(
	ctx context.Context, s webhook.Subscription,
) (subscriptions.Configuration, error) {
	shown := subscriptions.Configuration{
		Auth: string(s.Auth), AllEvents: s.Wants(webhook.AllEvents),
		AllMerchants: len(s.Merchants) == 0, Headers: headerViews(webhook.Mask(s.Headers)),
		Rate: s.Rate, Created: s.CreatedAt, Updated: s.UpdatedAt,
	}
	events, err := eventChoices(s.Events)
	if err != nil {
		return shown, err
	}
	for _, event := range events {
		if shown.AllEvents || event.Checked {
			shown.Events = append(shown.Events, event)
		}
	}
	for _, uid := range s.Merchants {
		merchant, err := c.Partners.Merchant(ctx, uid)
		if err != nil {
			return shown, err
		}
		shown.Merchants = append(shown.Merchants, merchant.Name)
	}
	return shown, nil
}

// unknownKind is the refusal of a kind that does not exist, as a field's fault.
func unknownKind(kind lending.EventKind) string {
	if kind.IsKnown() {
		return ""
	}
	return "There is no such event; choose one of the list."
}
