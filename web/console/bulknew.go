package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
	"drawbridge/views/bulk"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/list"
	"drawbridge/web/console/page"
)

// localTime is how browsers write the time of a form.
const localTime = "2006-01-02T15:04"

// newBulk shows the form that recovers or replays. A link may fill it in:
// subscription, and recover_since or replay_since in UTC.
func (c *Console) newBulk(ctx echo.Context) error {
	query, zone := ctx.QueryParams(), ui.ZoneOf(ctx.Request().Context())
	page := bulk.Start{
		Kind: "recover", Subscription: query.Get("subscription"), Faults: map[string]string{},
	}
	since := query.Get("recover_since")
	if query.Has("replay_since") {
		page.Kind, since = "replay", query.Get("replay_since")
	}
	if query.Get("kind") == "replay" {
		page.Kind = "replay"
	}
	at := readLocal(page.Faults, "since", since, time.UTC)
	if at.IsZero() {
		at = c.DB.Now().Add(-recent)
	}
	page.Since = at.In(zone).Format(localTime)
	return c.showStart(ctx, http.StatusOK, page)
}

func (c *Console) showStart(ctx echo.Context, status int, page bulk.Start) error {
	options, err := list.Subscriptions(c.Webhooks, "Choose one")(ctx.Request().Context())
	if err != nil {
		return err
	}
	page.Subscriptions = options
	page.Frame, err = c.Frame(ctx, ui.SectionBulks, "Recover or replay",
		ui.Crumb{Label: "Bulk re-sends", Href: paths.Bulks},
		ui.Crumb{Label: "Recover or replay"})
	if err != nil {
		return err
	}
	return render(ctx, status, bulk.StartPage(page))
}

// draftBulk makes a draft of what a form chose: deliveries by their ids, all
// that match a filter, or what to recover or replay.
func (c *Console) draftBulk(ctx echo.Context) error {
	form, err := ctx.FormParams()
	if err != nil {
		return err
	}
	switch {
	case form.Get("kind") != "":
		return c.draftRange(ctx, form)
	case form.Get("all") != "":
		return c.draftFilter(ctx, form)
	}
	return c.draftSelection(ctx, form)
}

// draftRange drafts a recovery, or a replay of a range or of one event.
func (c *Console) draftRange(ctx echo.Context, form url.Values) error {
	page := bulk.Start{
		Kind: form.Get("kind"), Subscription: form.Get("subscription"),
		Since: form.Get("since"), Until: form.Get("until"), Faults: map[string]string{},
	}
	zone := ui.ZoneOf(ctx.Request().Context())
	scope := webhook.BulkScope{
		Kind: webhook.BulkKind(page.Kind), EventUID: readUID(page.Faults, "event", form.Get("event")),
		Since: readLocal(page.Faults, "since", page.Since, zone),
		Until: readLocal(page.Faults, "until", page.Until, zone),
	}
	for _, text := range form["subscription"] {
		if uid := readUID(page.Faults, "subscription", text); uid != uuid.Nil {
			scope.Subscriptions = append(scope.Subscriptions, uid)
		}
	}
	if len(scope.Subscriptions) == 0 && page.Faults["subscription"] == "" {
		page.Faults["subscription"] = "Choose the subscription to send to."
	}
	if len(page.Faults) > 0 {
		return c.showStart(ctx, http.StatusBadRequest, page)
	}
	first, err := c.Webhooks.Subscription(ctx.Request().Context(), scope.Subscriptions[0])
	if err != nil {
		return err
	}
	scope.PartnerUID = first.PartnerUID
	err = c.keepDraft(ctx, scope)
	if refusal := formFaults(err); len(refusal) > 0 {
		page.Faults = refusal
		return c.showStart(ctx, http.StatusBadRequest, page)
	}
	return err
}

// readLocal reads the time of a form, which is in the reader's zone unless it
// names another.
func readLocal(faults map[string]string, name, text string, zone *time.Location) time.Time {
	return page.ReadTime(faults, name, text, zone)
}

// formFaults turns a refusal of wrong fields into faults for a form.
func formFaults(err error) map[string]string {
	faults := map[string]string{}
	if refusal, ok := asRefusal(err); ok && refusal.Code == lending.CodeValidation {
		for _, fault := range refusal.Details {
			faults[fault.Field] = sentence(fault.Message)
		}
	}
	return faults
}

// draftFilter drafts all that match the filter of the delivery list.
func (c *Console) draftFilter(ctx echo.Context, form url.Values) error {
	query, err := url.ParseQuery(strings.TrimPrefix(form.Get("filter"), "?"))
	if err != nil {
		return lending.NewError(lending.CodeValidation, "the filter cannot be read").WithCause(err)
	}
	query.Del("cursor")
	filter, _, wrong := c.deliveries().Filter(ctx, query)
	if len(wrong) > 0 {
		return lending.NewError(lending.CodeValidation,
			"the filter is not right; mend it in the list of deliveries first")
	}
	shares, err := c.Webhooks.PartnersOf(ctx.Request().Context(), filter)
	if err != nil {
		return err
	}
	partner, err := choosePartner(form.Get("partner"), shares)
	if err != nil {
		return err
	}
	if partner == uuid.Nil {
		return c.askPartner(ctx, shares, []ui.HiddenField{
			{Name: "all", Value: "1"}, {Name: "filter", Value: query.Encode()},
		})
	}
	return c.keepDraft(ctx, webhook.BulkScope{
		PartnerUID: partner, Kind: webhook.BulkFilter, Filter: filter,
	})
}

// draftSelection drafts the deliveries that were ticked.
func (c *Console) draftSelection(ctx echo.Context, form url.Values) error {
	var chosen []uuid.UUID
	var fields []ui.HiddenField
	for _, text := range form["delivery"] {
		uid, err := uuid.Parse(text)
		if err != nil {
			return lending.Invalid("delivery", "%.60q is no id of a delivery", text)
		}
		chosen = append(chosen, uid)
		fields = append(fields, ui.HiddenField{Name: "delivery", Value: uid.String()})
	}
	if len(chosen) == 0 {
		c.LeaveNotice(ctx, "Tick the deliveries to re-send first.")
		back := paths.Deliveries
		if query, err := url.ParseQuery(ctx.FormValue("filter")); err == nil {
			back = paths.With(paths.Deliveries, query)
		}
		return ctx.Redirect(http.StatusSeeOther, back)
	}
	owned, err := c.Webhooks.OwnersOf(ctx.Request().Context(), chosen)
	if err != nil {
		return err
	}
	shares := make([]webhook.PartnerShare, 0, len(owned))
	for _, owner := range owned {
		shares = append(shares, owner.PartnerShare)
	}
	partner, err := choosePartner(form.Get("partner"), shares)
	if err != nil {
		return err
	}
	for _, owner := range owned {
		if owner.UID == partner {
			return c.keepDraft(ctx, webhook.BulkScope{
				PartnerUID: partner, Kind: webhook.BulkSelection, Deliveries: owner.Deliveries,
			})
		}
	}
	return c.askPartner(ctx, shares, fields)
}

// choosePartner returns the one partner that is meant, nil when it must be asked.
func choosePartner(named string, shares []webhook.PartnerShare) (uuid.UUID, error) {
	for _, share := range shares {
		if share.UID.String() == named {
			return share.UID, nil
		}
	}
	switch len(shares) {
	case 0:
		return uuid.Nil, lending.NewError(lending.CodeInvalidState,
			"no delivery matches any more; go back to the list and choose again")
	case 1:
		return shares[0].UID, nil
	}
	return uuid.Nil, nil
}

func (c *Console) askPartner(
	ctx echo.Context, shares []webhook.PartnerShare, fields []ui.HiddenField,
) error {
	page := bulk.Choice{Fields: fields}
	for _, share := range shares {
		page.Partners = append(page.Partners, bulk.PartnerCount{
			UID: share.UID.String(), Name: share.Name, Count: share.Count,
		})
	}
	var err error
	page.Frame, err = c.Frame(ctx, ui.SectionBulks, "Which partner?",
		ui.Crumb{Label: "Bulk re-sends", Href: paths.Bulks},
		ui.Crumb{Label: "Which partner?"})
	if err != nil {
		return err
	}
	return render(ctx, http.StatusOK, bulk.ChoicePage(page))
}

// keepDraft keeps a draft and leads to its plan.
func (c *Console) keepDraft(ctx echo.Context, scope webhook.BulkScope) error {
	target, err := c.act(ctx, func(request context.Context, tx *postgres.Tx) (string, error) {
		uid, err := c.Webhooks.DraftBulk(request, tx, scope,
			webhook.BulkOptions{Pace: webhook.DefaultPace}, currentUser(ctx).Email)
		if err != nil {
			return "", err
		}
		return paths.To(paths.Bulk, uid.String()), c.auditBulk(ctx, tx, uid, "draft", operator.Entry{
			After: map[string]any{"kind": scope.Kind, "partner_uid": scope.PartnerUID},
		})
	})
	if err != nil {
		return err
	}
	return ctx.Redirect(http.StatusSeeOther, target)
}
