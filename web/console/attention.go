package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/attention"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
	"drawbridge/views/operations"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// Owners that the filter of the queue knows beside people.
const (
	ownerMe   = "me"
	ownerNone = "nobody"
)

// attentionRoutes lists the pages and actions of what needs attention, and the
// pages of health.
func (c *Console) attentionRoutes() []Route {
	const support, operators = operator.RoleSupport, operator.RoleOperator
	return []Route{
		{http.MethodGet, paths.HomeLive, "console.overview.live", support, c.overviewLive},
		{http.MethodGet, paths.Attention, "console.attention", support, c.attentionList},
		{http.MethodGet, paths.AttentionItem, "console.attention.item", support, c.attentionItem},
		{http.MethodPost, paths.AttentionItem, "console.attention.act", operators, c.attentionAct},
		{http.MethodGet, paths.System, "console.system", support, c.system},
	}
}

// attentionList lists what needs attention.
func (c *Console) attentionList(ctx echo.Context) error {
	filter, shown := readAttentionFilter(ctx.QueryParams(), currentUser(ctx).Email)
	page := operations.AttentionList{
		Filter: shown, Tabs: attentionTabs(shown), Active: activeAttention(shown),
		Kinds: attentionKinds(),
		Owners: []ui.Option{
			{Value: "", Label: "Anybody"},
			{Value: ownerMe, Label: "Me"},
			{Value: ownerNone, Label: "Nobody"},
		},
	}
	status := http.StatusOK
	if len(shown.Faults) > 0 {
		status = http.StatusBadRequest
	} else if err := c.fillAttention(ctx, &page, filter); err != nil {
		return err
	}
	var err error
	page.Frame, err = c.frame(ctx, ui.SectionAttention, "Needs attention",
		ui.Crumb{Label: "Needs attention"})
	if err != nil {
		return err
	}
	page.Notice = c.takeNotice(ctx)
	return render(ctx, status, operations.AttentionListPage(page))
}

func (c *Console) fillAttention(
	ctx echo.Context, page *operations.AttentionList, filter attention.Filter,
) error {
	request := ctx.Request().Context()
	count := startCount(request, c, filter, c.Attention.Count)
	items, next, err := c.Attention.List(request, filter)
	if err != nil {
		return err
	}
	all, err := count.with(len(items), filter.Cursor.IsZero() && next.IsZero())
	if err != nil {
		return err
	}
	page.Summary = all.in("matter", "matters") + ", last opened first"
	for _, item := range items {
		page.Rows = append(page.Rows, attentionRow(item, c.DB.Now()))
	}
	query := attentionQuery(page.Filter)
	if !filter.Cursor.IsZero() {
		page.Newest = paths.With(paths.Attention, query)
	}
	if !next.IsZero() {
		page.Older = paths.With(paths.Attention, with(query, "cursor", next.String()))
	}
	return nil
}

// readAttentionFilter reads the filter of the queue from its address; without a
// state it is what is open.
func readAttentionFilter(
	query url.Values, me string,
) (attention.Filter, operations.AttentionFilter) {
	shown := operations.AttentionFilter{
		State: query.Get("state"), Kind: query.Get("kind"), Owner: query.Get("owner"),
		Faults: map[string]string{},
	}
	filter := attention.Filter{
		State: attention.Waiting, Kind: attention.Kind(shown.Kind), Limit: pageSize,
	}
	switch shown.State {
	case "", string(attention.Waiting):
		shown.State = ""
	case string(attention.Asleep), string(attention.Closed):
		filter.State = attention.State(shown.State)
	case "all":
		filter.State = ""
	default:
		shown.Faults["state"] = "There is no such state; choose one above."
	}
	if filter.Kind != "" && !slices.Contains(attention.Kinds(), filter.Kind) {
		shown.Faults["kind"] = "There is no such kind; choose one of the list."
	}
	switch shown.Owner {
	case "":
	case ownerMe:
		filter.Owner = me
	case ownerNone:
		filter.Unowned = true
	default:
		shown.Faults["owner"] = "The owner is me or nobody; choose one of the list."
	}
	cursor, err := postgres.ParseCursor(query.Get("cursor"))
	if err != nil {
		shown.Faults["cursor"] = "The page's place in the list cannot be read; start from the newest."
	}
	filter.Cursor = cursor
	return filter, shown
}

func attentionQuery(shown operations.AttentionFilter) url.Values {
	query := url.Values{}
	for name, value := range map[string]string{
		"state": shown.State, "kind": shown.Kind, "owner": shown.Owner,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}

func attentionTabs(shown operations.AttentionFilter) []ui.Tab {
	var tabs []ui.Tab
	for _, tab := range []struct{ state, label string }{
		{"", "Open"},
		{string(attention.Asleep), "Snoozed"},
		{string(attention.Closed), "Closed"},
		{"all", "All"},
	} {
		tabs = append(tabs, ui.Tab{
			Label: tab.label, Current: shown.State == tab.state,
			Href: paths.With(paths.Attention, with(attentionQuery(shown), "state", tab.state)),
		})
	}
	return tabs
}

func activeAttention(shown operations.AttentionFilter) []ui.ActiveFilter {
	var active []ui.ActiveFilter
	query := attentionQuery(shown)
	if shown.Kind != "" {
		active = append(active, ui.ActiveFilter{
			Label: ui.AttentionKind(shown.Kind), Href: paths.With(paths.Attention, with(query, "kind", "")),
		})
	}
	if shown.Owner != "" {
		active = append(active, ui.ActiveFilter{
			Label: "Owner: " + shown.Owner, Href: paths.With(paths.Attention, with(query, "owner", "")),
		})
	}
	return active
}

func attentionKinds() []ui.Option {
	options := []ui.Option{{Value: "", Label: "Anything"}}
	for _, kind := range attention.Kinds() {
		options = append(options, ui.Option{
			Value: string(kind), Label: ui.AttentionKind(string(kind)),
		})
	}
	return options
}

// attentionRow is an item as pages show it.
func attentionRow(item attention.Item, now time.Time) ui.AttentionRow {
	row := ui.AttentionRow{
		UID: item.UID.String(), Kind: string(item.Kind), Partner: item.Partner, URL: item.URL,
		Severity: string(item.Severity), Detail: item.Detail, Count: item.Count,
		Opened: item.OpenedAt, LastSeen: item.LastSeenAt, Owner: item.Owner,
		ClosedBy: item.ClosedBy, Note: item.Note,
	}
	if item.Snoozed(now) {
		row.SnoozedUntil = *item.SnoozedUntil
	}
	if item.ClosedAt != nil {
		row.Closed = *item.ClosedAt
	}
	row.LookHref, row.Look = attentionTarget(item)
	return row
}

// attentionTarget is where to look at what an item is about.
func attentionTarget(item attention.Item) (href, label string) {
	since := item.OpenedAt.Add(-time.Hour).UTC().Format(time.RFC3339)
	uid := item.Subscription.UUID.String()
	switch item.Kind {
	case attention.KindUsedUp:
		return paths.With(paths.Deliveries, url.Values{
			"subscription": {uid}, "state": {string(webhook.DeliveryFailed)}, "since": {since},
		}), "Show the deliveries"
	case attention.KindUnknown:
		return paths.With(paths.Deliveries, url.Values{"subscription": {uid}, "since": {since}}),
			"Show the deliveries"
	case attention.KindOverdue:
		return paths.With(paths.Deliveries, url.Values{"state": {string(webhook.DeliveryPending)}}),
			"Show what waits"
	case attention.KindMailFailed:
		return paths.With(paths.Emails, url.Values{"state": {"failed"}}), "Show the e-mails"
	case attention.KindMailRefused:
		return paths.With(paths.Emails, url.Values{"state": {"queued"}}), "Show what waits"
	case attention.KindFailing, attention.KindCertificate, attention.KindProbe,
		attention.KindNeverSucceeded, attention.KindUnopened:
		return paths.To(paths.Subscription, uid), "Open the subscription"
	}
	return "", ""
}

// attentionItem shows one matter.
func (c *Console) attentionItem(ctx echo.Context) error {
	return c.showAttention(ctx, http.StatusOK, nil)
}

func (c *Console) showAttention(
	ctx echo.Context, status int, faults map[string]string,
) error {
	uid, err := pathUID(ctx)
	if err != nil {
		return err
	}
	item, err := c.Attention.Get(ctx.Request().Context(), uid)
	if err != nil {
		return err
	}
	user := currentUser(ctx)
	row := attentionRow(item, c.DB.Now())
	page := operations.AttentionItem{
		Row: row, Acts: user.Role.Allows(operator.RoleOperator), Mine: item.Owner == user.Email,
		Faults: faults, Typed: ctx.FormValue("note"),
	}
	page.Frame, err = c.frame(ctx, ui.SectionAttention, row.Title(),
		ui.Crumb{Label: "Needs attention", Href: paths.Attention},
		ui.Crumb{Label: row.Title()})
	if err != nil {
		return err
	}
	page.Notice = c.takeNotice(ctx)
	return render(ctx, status, operations.AttentionItemPage(page))
}

// attentionDone is what is said after an action.
var attentionDone = map[string]string{
	"take": "It is yours now.", "release": "It belongs to nobody again.",
	"snooze": "It is out of sight for a while.", "wake": "It is in sight again.",
	"resolve": "Resolved. Should the cause turn up again, it is opened anew.",
}

// attentionAct takes, gives back, snoozes, wakes or resolves an item.
func (c *Console) attentionAct(ctx echo.Context) error {
	uid, err := pathUID(ctx)
	if err != nil {
		return err
	}
	target := paths.To(paths.AttentionItem, uid.String())
	if back := ctx.FormValue("back"); back != "" {
		target = safeNext(back)
	}
	_, err = c.act(ctx, func(request context.Context, tx *postgres.Tx) (string, error) {
		return target, c.actOnAttention(request, tx, uid, ctx)
	})
	if refusal, ok := errors.AsType[*lending.Error](err); ok && len(refusal.Details) > 0 {
		faults := map[string]string{}
		for _, detail := range refusal.Details {
			faults[detail.Field] = sentence(detail.Message)
		}
		return c.showAttention(ctx, http.StatusBadRequest, faults)
	}
	if err != nil {
		return err
	}
	c.leaveNotice(ctx, attentionDone[ctx.FormValue("act")])
	return ctx.Redirect(http.StatusSeeOther, target)
}

func (c *Console) actOnAttention(
	request context.Context, tx *postgres.Tx, uid uuid.UUID, ctx echo.Context,
) error {
	by := attention.Actor{Email: currentUser(ctx).Email, Address: ctx.RealIP()}
	switch ctx.FormValue("act") {
	case "take":
		return c.Attention.Take(request, tx, uid, by)
	case "release":
		return c.Attention.Release(request, tx, uid, by)
	case "wake":
		return c.Attention.Wake(request, tx, uid, by)
	case "snooze":
		length, err := time.ParseDuration(ctx.FormValue("for"))
		if err != nil {
			return lending.Invalid("until", "choose for how long it is out of sight")
		}
		return c.Attention.Snooze(request, tx, uid, tx.Now.Add(length), by)
	case "resolve":
		return c.Attention.Resolve(request, tx, uid, ctx.FormValue("note"), by)
	}
	return lending.NewError(lending.CodeValidation, "There is no such action.")
}
