package bulk

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	resend "drawbridge/internal/webhook/bulk"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/search"
	"drawbridge/views/bulk"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/page"
)

// start shows the form that recovers or replays. A link may fill it in:
// subscription, and recover_since or replay_since in UTC.
func (f *Feature) start(ctx echo.Context) error {
	query, zone := ctx.QueryParams(), ui.ZoneOf(ctx.Request().Context())
	form := bulk.Start{
		Kind: "recover", Subscription: query.Get("subscription"), Errors: map[string]string{},
	}
	since := query.Get("recover_since")
	if query.Has("replay_since") {
		form.Kind, since = "replay", query.Get("replay_since")
	}
	if query.Get("kind") == "replay" {
		form.Kind = "replay"
	}
	at := page.ReadTime(form.Errors, "since", since, time.UTC)
	if at.IsZero() {
		at = f.DB.Now().Add(-24 * time.Hour)
	}
	form.Since = at.In(zone).Format("2006-01-02T15:04")
	return f.showStart(ctx, http.StatusOK, form)
}

func (f *Feature) showStart(ctx echo.Context, status int, form bulk.Start) (err error) {
	form.Subscriptions, form.Pick, err = f.Pick(ctx.Request().Context(), search.Subscription,
		"Choose one", ctx.FormValue("subscription"+ui.SoughtSuffix), form.Subscription)
	if err != nil {
		return err
	}
	return f.Show(ctx, status, place.Under(paths.Bulks, "Recover or replay"), bulk.StartForm(form))
}

// draft makes a draft of what a form chose: deliveries by their ids, all
// that match a filter, or what to recover or replay.
func (f *Feature) draft(ctx echo.Context) error {
	form, err := ctx.FormParams()
	if err != nil {
		return err
	}
	switch {
	case form.Get("kind") != "":
		return f.draftRange(ctx, form)
	case form.Get("all") != "":
		return f.draftFilter(ctx, form)
	}
	return f.draftSelection(ctx, form)
}

// draftRange drafts a recovery, or a replay of a range or of one event.
func (f *Feature) draftRange(ctx echo.Context, form url.Values) error {
	start := bulk.Start{
		Kind: form.Get("kind"), Subscription: form.Get("subscription"),
		Since: form.Get("since"), Until: form.Get("until"), Errors: map[string]string{},
	}
	zone := ui.ZoneOf(ctx.Request().Context())
	scope := resend.Scope{
		Kind: resend.Kind(start.Kind), EventUID: page.ReadUID(start.Errors, "event", form.Get("event")),
		Since: page.ReadTime(start.Errors, "since", start.Since, zone),
		Until: page.ReadTime(start.Errors, "until", start.Until, zone),
	}
	for _, text := range form["subscription"] {
		if uid := page.ReadUID(start.Errors, "subscription", text); uid != uuid.Nil {
			scope.Subscriptions = append(scope.Subscriptions, uid)
		}
	}
	if len(scope.Subscriptions) == 0 && start.Errors["subscription"] == "" {
		start.Errors["subscription"] = "Choose the subscription to send to."
	}
	if len(start.Errors) > 0 {
		return f.showStart(ctx, http.StatusBadRequest, start)
	}
	first, err := f.Webhooks.Subscriptions.Get(ctx.Request().Context(), scope.Subscriptions[0])
	if err != nil {
		return err
	}
	scope.PartnerUID = first.PartnerUID
	err = f.keepDraft(ctx, scope)
	if refusal := problems(err); len(refusal) > 0 {
		start.Errors = refusal
		return f.showStart(ctx, http.StatusBadRequest, start)
	}
	return err
}

// draftFilter drafts all that match the filter of the delivery list.
func (f *Feature) draftFilter(ctx echo.Context, form url.Values) error {
	query, err := url.ParseQuery(strings.TrimPrefix(form.Get("filter"), "?"))
	if err != nil {
		return lending.NewError(lending.CodeValidation, "the filter cannot be read").WithCause(err)
	}
	query.Del("cursor")
	filter, _, wrong := f.Filter(ctx, query)
	if len(wrong) > 0 {
		return lending.NewError(lending.CodeValidation,
			"the filter is not right; correct it in the list of deliveries first")
	}
	shares, err := f.Webhooks.Bulk.PartnersOf(ctx.Request().Context(), filter)
	if err != nil {
		return err
	}
	partner, err := choosePartner(form.Get("partner"), shares)
	if err != nil {
		return err
	}
	if partner == uuid.Nil {
		return f.askPartner(ctx, shares, []ui.HiddenField{
			{Name: "all", Value: "1"}, {Name: "filter", Value: query.Encode()},
		})
	}
	return f.keepDraft(ctx, resend.Scope{
		PartnerUID: partner, Kind: resend.KindFilter, Filter: filter,
	})
}

// draftSelection drafts the deliveries that were ticked.
func (f *Feature) draftSelection(ctx echo.Context, form url.Values) error {
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
		f.LeaveNotice(ctx, "Tick the deliveries to re-send first.")
		back := paths.Deliveries
		if query, err := url.ParseQuery(ctx.FormValue("filter")); err == nil {
			back = paths.With(paths.Deliveries, query)
		}
		return page.LeadTo(ctx, back)
	}
	owned, err := f.Webhooks.Bulk.OwnersOf(ctx.Request().Context(), chosen)
	if err != nil {
		return err
	}
	shares := make([]resend.PartnerShare, 0, len(owned))
	for _, owner := range owned {
		shares = append(shares, owner.PartnerShare)
	}
	partner, err := choosePartner(form.Get("partner"), shares)
	if err != nil {
		return err
	}
	for _, owner := range owned {
		if owner.UID == partner {
			return f.keepDraft(ctx, resend.Scope{
				PartnerUID: partner, Kind: resend.KindSelection, Deliveries: owner.Deliveries,
			})
		}
	}
	return f.askPartner(ctx, shares, fields)
}

// choosePartner returns the one partner that is meant, nil when it must be asked.
func choosePartner(named string, shares []resend.PartnerShare) (uuid.UUID, error) {
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

func (f *Feature) askPartner(
	ctx echo.Context, shares []resend.PartnerShare, fields []ui.HiddenField,
) error {
	return f.Show(ctx, http.StatusOK, place.Under(paths.Bulks, "Which partner?"),
		bulk.ChoosePartner(fields, shares))
}

// keepDraft keeps a draft and leads to its plan.
func (f *Feature) keepDraft(ctx echo.Context, scope resend.Scope) error {
	by := page.User(ctx).Email
	outcome, err := f.Commit(ctx, change("draft", uuid.Nil,
		func(request context.Context, tx *postgres.Tx, entry *operator.Entry) error {
			uid, err := f.Webhooks.Bulk.Draft(request, tx, scope,
				resend.Options{Pace: resend.DefaultPace}, by)
			entry.Subject = uid.String()
			entry.After = map[string]any{"kind": scope.Kind, "partner_uid": scope.PartnerUID}
			return err
		}))
	if err != nil {
		return err
	}
	return page.LeadTo(ctx, outcome.Target)
}
