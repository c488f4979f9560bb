package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
	"drawbridge/views/paths"
	"drawbridge/views/subscriptions"
	"drawbridge/views/ui"
)

// maxPartners bounds the partners to choose from.
const maxPartners = 500

// subscriptionRoutes lists the pages and actions of the subscriptions.
func (c *Console) subscriptionRoutes() []Route {
	const support, change = operator.RoleSupport, operator.RoleOperator
	get, post := http.MethodGet, http.MethodPost
	return []Route{
		{get, paths.Subscriptions, "console.subscriptions", support, c.subscriptions},
		{get, paths.SubscriptionNew, "console.subscription.new", change, c.newSubscription},
		{post, paths.SubscriptionNew, "console.subscription.create", change, c.createSubscription},
		{post, paths.SubscriptionCheck, "console.subscription.check", change, c.checkAddress},
		{get, paths.Subscription, "console.subscription", support, c.subscription},
		{get, paths.SubscriptionLive, "console.subscription.live", support, c.subscriptionLive},
		{get, paths.SubscriptionEdit, "console.subscription.edit", change, c.editSubscription},
		{post, paths.SubscriptionEdit, "console.subscription.change", change, c.changeSubscription},
		{get, paths.SubscriptionTest, "console.subscription.test", change, c.testForm},
		{post, paths.SubscriptionTest, "console.subscription.test.send", change, c.sendTest},
		{get, paths.SubscriptionResult, "console.subscription.result", support, c.testResult},
		{get, paths.SubscriptionOutcome, "console.subscription.result.live", support, c.testLive},
		{get, paths.SubscriptionRotate, "console.subscription.rotate", change, c.rotateForm},
		{post, paths.SubscriptionRotate, "console.subscription.rotated", change, c.rotate},
		{post, paths.SubscriptionCompare, "console.subscription.compare", support, c.compareSecret},
		{get, paths.SubscriptionRestore, "console.subscription.restore", change, c.restoreForm},
		{post, paths.SubscriptionRestore, "console.subscription.restored", change, c.restore},
		{get, paths.SubscriptionPause, "console.subscription.pause", change, c.ask(pauseAction)},
		{
			post, paths.SubscriptionPause, "console.subscription.paused", change,
			c.perform(pauseAction),
		},
		{get, paths.SubscriptionResume, "console.subscription.resume", change, c.ask(resumeAction)},
		{
			post, paths.SubscriptionResume, "console.subscription.resumed", change,
			c.perform(resumeAction),
		},
		{get, paths.SubscriptionDelete, "console.subscription.delete", change, c.ask(deleteAction)},
		{
			post, paths.SubscriptionDelete, "console.subscription.deleted", change,
			c.perform(deleteAction),
		},
	}
}

// mayChange tells whether the signed-in user may change subscriptions.
func mayChange(ctx echo.Context) bool {
	return currentUser(ctx).Role.Allows(operator.RoleOperator)
}

// subscriptions lists where events are sent.
func (c *Console) subscriptions(ctx echo.Context) error {
	request := ctx.Request().Context()
	filter, shown := readSubscriptionFilter(ctx.QueryParams())
	page := subscriptions.SubscriptionList{
		Filter: shown, Events: eventOptions(), MayChange: mayChange(ctx),
		Tabs: subscriptionTabs(shown),
	}
	var err error
	if page.Partners, err = c.partnerOptions(request, "All partners"); err != nil {
		return err
	}
	page.Active = activeSubscriptionFilters(shown, page.Partners)
	status := http.StatusOK
	if len(shown.Faults) > 0 {
		status = http.StatusBadRequest
	} else if err := c.fillSubscriptions(request, &page, filter); err != nil {
		return err
	}
	page.Views, err = c.viewsBar(ctx, paths.Subscriptions, subscriptionQuery(shown))
	if err != nil {
		return err
	}
	page.Frame, err = c.frame(ctx, ui.SectionSubscriptions, "Subscriptions",
		ui.Crumb{Label: "Subscriptions"})
	if err != nil {
		return err
	}
	page.Notice = c.takeNotice(ctx)
	return render(ctx, status, subscriptions.SubscriptionListPage(page))
}

// fillSubscriptions loads the page of the list that begins after the cursor.
func (c *Console) fillSubscriptions(
	ctx context.Context, page *subscriptions.SubscriptionList, filter webhook.SummaryFilter,
) error {
	count := startCount(ctx, c, filter, c.Webhooks.CountSummaries)
	summaries, next, err := c.Webhooks.SubscriptionSummaries(ctx, filter)
	if err != nil {
		return err
	}
	all, err := count.with(len(summaries), filter.Cursor.IsZero() && next.IsZero())
	if err != nil {
		return err
	}
	page.Summary = all.in("subscription", "subscriptions")
	health, err := c.dayOf(ctx, summaries)
	if err != nil {
		return err
	}
	for _, summary := range summaries {
		page.Rows = append(page.Rows, subscriptions.SubscriptionRow{
			UID: summary.UID.String(), Partner: summary.PartnerName, URL: summary.URL,
			State: string(summary.State), Auth: string(summary.Auth), Events: summary.Events,
			Merchants: summary.Merchants, Created: summary.CreatedAt, MayChange: page.MayChange,
			Health: healthView(health[summary.UID]),
		})
	}
	query := subscriptionQuery(page.Filter)
	if !filter.Cursor.IsZero() {
		page.Newest = paths.With(paths.Subscriptions, query)
	}
	if !next.IsZero() {
		page.Older = paths.With(paths.Subscriptions, with(query, "cursor", next.String()))
	}
	return nil
}

// partnerOptions are the partners to choose from, all named by the label first.
func (c *Console) partnerOptions(ctx context.Context, all string) ([]ui.Option, error) {
	partners, _, err := c.Partners.ListPartners(ctx, partner.Filter{Limit: maxPartners})
	if err != nil {
		return nil, err
	}
	options := []ui.Option{{Label: all}}
	for _, each := range partners {
		options = append(options, ui.Option{Value: each.UID.String(), Label: each.Name})
	}
	return options, nil
}

// readSubscriptionFilter reads the filter of the list from its address. Wrong
// values are left out of the filter, and named in the view's faults.
func readSubscriptionFilter(
	query url.Values,
) (webhook.SummaryFilter, subscriptions.SubscriptionFilter) {
	shown := subscriptions.SubscriptionFilter{
		State: query.Get("state"), Partner: strings.TrimSpace(query.Get("partner")),
		Event: query.Get("event"), Host: strings.TrimSpace(query.Get("host")),
		Faults: map[string]string{},
	}
	filter := webhook.SummaryFilter{
		State: webhook.State(shown.State), Event: lending.EventKind(shown.Event),
		PartnerUID: readUID(shown.Faults, "partner", shown.Partner),
		Host:       shown.Host, Limit: pageSize,
	}
	if filter.State != "" && !slices.Contains(subscriptionStates, filter.State) {
		shown.Faults["state"] = "There is no such state; choose one above."
	}
	if filter.Event != "" && !filter.Event.IsKnown() {
		shown.Faults["event"] = "There is no such event; choose one of the list."
	}
	cursor, err := postgres.ParseCursor(query.Get("cursor"))
	if err != nil {
		shown.Faults["cursor"] = "The page's place in the list cannot be read; start from the newest."
	}
	filter.Cursor = cursor
	return filter, shown
}

// subscriptionStates are the states in the order of the tabs, what needs a
// human first.
var subscriptionStates = []webhook.State{
	webhook.StateFailing, webhook.StateActive, webhook.StatePaused, webhook.StateDeleted,
}

// subscriptionQuery writes a filter as the query of an address, the inverse of
// readSubscriptionFilter.
func subscriptionQuery(shown subscriptions.SubscriptionFilter) url.Values {
	query := url.Values{}
	for name, value := range map[string]string{
		"state": shown.State, "partner": shown.Partner, "event": shown.Event, "host": shown.Host,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}

func subscriptionTabs(shown subscriptions.SubscriptionFilter) []ui.Tab {
	query := subscriptionQuery(shown)
	tabs := []ui.Tab{{
		Label: "All", Href: paths.With(paths.Subscriptions, with(query, "state", "")),
		Current: shown.State == "",
	}}
	for _, state := range subscriptionStates {
		tabs = append(tabs, ui.Tab{
			Label:   ui.SubscriptionChip(string(state)).Word,
			Href:    paths.With(paths.Subscriptions, with(query, "state", string(state))),
			Current: shown.State == string(state),
		})
	}
	return tabs
}

// activeSubscriptionFilters are the filters in force besides the state, each
// with the address of the list without it.
func activeSubscriptionFilters(
	shown subscriptions.SubscriptionFilter, partners []ui.Option,
) []ui.ActiveFilter {
	query := subscriptionQuery(shown)
	name := shown.Partner
	for _, option := range partners {
		if option.Value == shown.Partner && name != "" {
			name = option.Label
		}
	}
	var active []ui.ActiveFilter
	for _, each := range []struct{ name, label, value string }{
		{"partner", "Partner ", name},
		{"event", "Receives ", shown.Event},
		{"host", "Host contains ", shown.Host},
	} {
		if each.value != "" {
			active = append(active, ui.ActiveFilter{
				Label: each.label + each.value,
				Href:  paths.With(paths.Subscriptions, with(query, each.name, "")),
			})
		}
	}
	return active
}
