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
	"drawbridge/views"
)

// maxPartners bounds the partners to choose from.
const maxPartners = 500

// subscriptionRoutes lists the pages and actions of the subscriptions.
func (c *Console) subscriptionRoutes() []Route {
	const support, change = operator.RoleSupport, operator.RoleOperator
	get, post := http.MethodGet, http.MethodPost
	return []Route{
		{get, views.PathSubscriptions, "console.subscriptions", support, c.subscriptions},
		{get, views.PathSubscriptionNew, "console.subscription.new", change, c.newSubscription},
		{post, views.PathSubscriptionNew, "console.subscription.create", change, c.createSubscription},
		{post, views.PathSubscriptionCheck, "console.subscription.check", change, c.checkAddress},
		{get, views.PathSubscription, "console.subscription", support, c.subscription},
		{get, views.PathSubscriptionLive, "console.subscription.live", support, c.subscriptionLive},
		{get, views.PathSubscriptionEdit, "console.subscription.edit", change, c.editSubscription},
		{post, views.PathSubscriptionEdit, "console.subscription.change", change, c.changeSubscription},
		{get, views.PathSubscriptionTest, "console.subscription.test", change, c.testForm},
		{post, views.PathSubscriptionTest, "console.subscription.test.send", change, c.sendTest},
		{get, views.PathSubscriptionResult, "console.subscription.result", support, c.testResult},
		{get, views.PathSubscriptionOutcome, "console.subscription.result.live", support, c.testLive},
		{get, views.PathSubscriptionRotate, "console.subscription.rotate", change, c.rotateForm},
		{post, views.PathSubscriptionRotate, "console.subscription.rotated", change, c.rotate},
		{post, views.PathSubscriptionCompare, "console.subscription.compare", support, c.compareSecret},
		{get, views.PathSubscriptionRestore, "console.subscription.restore", change, c.restoreForm},
		{post, views.PathSubscriptionRestore, "console.subscription.restored", change, c.restore},
		{get, views.PathSubscriptionPause, "console.subscription.pause", change, c.ask(pauseAction)},
		{
			post, views.PathSubscriptionPause, "console.subscription.paused", change,
			c.perform(pauseAction),
		},
		{get, views.PathSubscriptionResume, "console.subscription.resume", change, c.ask(resumeAction)},
		{
			post, views.PathSubscriptionResume, "console.subscription.resumed", change,
			c.perform(resumeAction),
		},
		{get, views.PathSubscriptionDelete, "console.subscription.delete", change, c.ask(deleteAction)},
		{
			post, views.PathSubscriptionDelete, "console.subscription.deleted", change,
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
	page := views.SubscriptionList{
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
	page.Views, err = c.viewsBar(ctx, views.PathSubscriptions, subscriptionQuery(shown))
	if err != nil {
		return err
	}
	page.Frame, err = c.Frame(ctx, views.SectionSubscriptions, "Subscriptions",
		views.Crumb{Label: "Subscriptions"})
	if err != nil {
		return err
	}
	page.Notice = c.TakeNotice(ctx)
	return render(ctx, status, views.SubscriptionListPage(page))
}

// fillSubscriptions loads the page of the list that begins after the cursor.
func (c *Console) fillSubscriptions(
	ctx context.Context, page *views.SubscriptionList, filter webhook.SummaryFilter,
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
		page.Rows = append(page.Rows, views.SubscriptionRow{
			UID: summary.UID.String(), Partner: summary.PartnerName, URL: summary.URL,
			State: string(summary.State), Auth: string(summary.Auth), Events: summary.Events,
			Merchants: summary.Merchants, Created: summary.CreatedAt, MayChange: page.MayChange,
			Health: healthView(health[summary.UID]),
		})
	}
	query := subscriptionQuery(page.Filter)
	if !filter.Cursor.IsZero() {
		page.Newest = views.SubscriptionsPath(query)
	}
	if !next.IsZero() {
		page.Older = views.SubscriptionsPath(with(query, "cursor", next.String()))
	}
	return nil
}

// partnerOptions are the partners to choose from, all named by the label first.
func (c *Console) partnerOptions(ctx context.Context, all string) ([]views.Option, error) {
	partners, _, err := c.Partners.ListPartners(ctx, partner.Filter{Limit: maxPartners})
	if err != nil {
		return nil, err
	}
	options := []views.Option{{Label: all}}
	for _, each := range partners {
		options = append(options, views.Option{Value: each.UID.String(), Label: each.Name})
	}
	return options, nil
}

// readSubscriptionFilter reads the filter of the list from its address. Wrong
// values are left out of the filter, and named in the view's faults.
func readSubscriptionFilter(query url.Values) (webhook.SummaryFilter, views.SubscriptionFilter) {
	shown := views.SubscriptionFilter{
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
func subscriptionQuery(shown views.SubscriptionFilter) url.Values {
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

func subscriptionTabs(shown views.SubscriptionFilter) []views.Tab {
	query := subscriptionQuery(shown)
	tabs := []views.Tab{{
		Label: "All", Href: views.SubscriptionsPath(with(query, "state", "")),
		Current: shown.State == "",
	}}
	for _, state := range subscriptionStates {
		tabs = append(tabs, views.Tab{
			Label:   views.SubscriptionChip(string(state)).Word,
			Href:    views.SubscriptionsPath(with(query, "state", string(state))),
			Current: shown.State == string(state),
		})
	}
	return tabs
}

// activeSubscriptionFilters are the filters in force besides the state, each
// with the address of the list without it.
func activeSubscriptionFilters(
	shown views.SubscriptionFilter, partners []views.Option,
) []views.ActiveFilter {
	query := subscriptionQuery(shown)
	name := shown.Partner
	for _, option := range partners {
		if option.Value == shown.Partner && name != "" {
			name = option.Label
		}
	}
	var active []views.ActiveFilter
	for _, each := range []struct{ name, label, value string }{
		{"partner", "Partner ", name},
		{"event", "Receives ", shown.Event},
		{"host", "Host contains ", shown.Host},
	} {
		if each.value != "" {
			active = append(active, views.ActiveFilter{
				Label: each.label + each.value,
				Href:  views.SubscriptionsPath(with(query, each.name, "")),
			})
		}
	}
	return active
}
