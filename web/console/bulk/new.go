package bulk

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
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

// start shows the form of a recovery or replay, or asks which partner's part of a selection is
// meant. A link may fill in the form: subscription, and recover_since or replay_since in UTC.
func (f *Feature) start(ctx echo.Context) error {
	query, zone := ctx.QueryParams(), ui.ZoneOf(ctx.Request().Context())
	if query.Has("all") || query.Has("delivery") {
		return f.askPartner(ctx)
	}
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
	form.Since, form.Zone = at.In(zone).Format("2006-01-02T15:04"), page.ZoneField(zone)
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

// draft creates a draft of what a form selected: deliveries by their ids, all that match a
// filter, or what to recover or replay.
func (f *Feature) draft(ctx echo.Context) error {
	form, err := ctx.FormParams()
	if err != nil {
		return err
	}
	if form.Get("kind") != "" {
		return f.draftRange(ctx, form)
	}
	return f.draftChoice(ctx, form)
}

// draftRange creates a draft of a recovery, or of the replay of a range or of one event.
func (f *Feature) draftRange(ctx echo.Context, form url.Values) error {
	start := bulk.Start{
		Kind: form.Get("kind"), Subscription: form.Get("subscription"),
		Since: form.Get("since"), Until: form.Get("until"), Errors: map[string]string{},
	}
	zone := page.FormZone(ctx)
	start.Zone = page.ZoneField(zone)
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

// choice is a selection in the list of deliveries, which may belong to several partners.
type choice struct {
	partners []resend.PartnerShare
	// scope returns the part of one partner.
	scope func(partner uuid.UUID) resend.Scope
	// query is the selection as the query of an address.
	query url.Values
}

// choose reads a selection: all deliveries that match a filter, or those that were ticked.
func (f *Feature) choose(ctx echo.Context, form url.Values) (choice, error) {
	if form.Get("all") != "" {
		return f.chooseFilter(ctx, form)
	}
	return f.chooseTicked(ctx, form)
}

func (f *Feature) chooseFilter(ctx echo.Context, form url.Values) (choice, error) {
	query, err := url.ParseQuery(strings.TrimPrefix(form.Get("filter"), "?"))
	if err != nil {
		return choice{}, lending.NewError(lending.CodeValidation, "the filter cannot be read").
			WithCause(err)
	}
	query.Del("cursor")
	filter, _, wrong := f.Filter(ctx, query)
	if len(wrong) > 0 {
		return choice{}, lending.NewError(lending.CodeValidation,
			"the filter is invalid; correct it in the list of deliveries first")
	}
	shares, err := f.Webhooks.Bulk.PartnersOf(ctx.Request().Context(), filter)
	return choice{
		partners: shares, query: url.Values{"all": {"1"}, "filter": {query.Encode()}},
		scope: func(partner uuid.UUID) resend.Scope {
			return resend.Scope{PartnerUID: partner, Kind: resend.KindFilter, Filter: filter}
		},
	}, err
}

func (f *Feature) chooseTicked(ctx echo.Context, form url.Values) (choice, error) {
	// A parameter of an address may be given only once.
	together := strings.Join(form["delivery"], ",")
	var ticked []uuid.UUID
	for text := range strings.SplitSeq(together, ",") {
		uid, err := uuid.Parse(text)
		if err != nil {
			return choice{}, lending.Invalid("delivery", "%.60q is not the id of a delivery", text)
		}
		ticked = append(ticked, uid)
	}
	owned, err := f.Webhooks.Bulk.OwnersOf(ctx.Request().Context(), ticked)
	if err != nil {
		return choice{}, err
	}
	chosen := choice{query: url.Values{"delivery": {together}}}
	deliveries := map[uuid.UUID][]uuid.UUID{}
	for _, owner := range owned {
		chosen.partners = append(chosen.partners, owner.PartnerShare)
		deliveries[owner.UID] = owner.Deliveries
	}
	chosen.scope = func(partner uuid.UUID) resend.Scope {
		return resend.Scope{
			PartnerUID: partner, Kind: resend.KindSelection, Deliveries: deliveries[partner],
		}
	}
	return chosen, nil
}

// draftChoice creates a draft of a selection, or asks for a partner if it belongs to several.
func (f *Feature) draftChoice(ctx echo.Context, form url.Values) error {
	if form.Get("all") == "" && len(form["delivery"]) == 0 {
		f.LeaveNotice(ctx, "Tick the deliveries to re-send first.")
		back := paths.Deliveries
		if query, err := url.ParseQuery(ctx.FormValue("filter")); err == nil {
			back = paths.With(paths.Deliveries, query)
		}
		return page.Redirect(ctx, back)
	}
	chosen, err := f.choose(ctx, form)
	if err != nil {
		return err
	}
	partner, err := choosePartner(form.Get("partner"), chosen.partners)
	if err != nil {
		return err
	}
	if partner == uuid.Nil {
		return page.Redirect(ctx, paths.With(paths.BulkNew, chosen.query))
	}
	return f.keepDraft(ctx, chosen.scope(partner))
}

// askPartner asks for one partner of the selection in the address.
func (f *Feature) askPartner(ctx echo.Context) error {
	chosen, err := f.choose(ctx, ctx.QueryParams())
	if err != nil {
		return err
	}
	if _, err := choosePartner("", chosen.partners); err != nil {
		return err
	}
	var fields []ui.HiddenField
	for _, name := range slices.Sorted(maps.Keys(chosen.query)) {
		fields = append(fields, ui.HiddenField{Name: name, Value: chosen.query.Get(name)})
	}
	return f.Show(ctx, http.StatusOK, place.Under(paths.Bulks, "Which partner?"),
		bulk.ChoosePartner(fields, chosen.partners))
}

// choosePartner returns the partner that is meant, nil if the user must be asked. If the
// named partner has nothing left to send, it does not fall back to another partner.
func choosePartner(named string, shares []resend.PartnerShare) (uuid.UUID, error) {
	for _, share := range shares {
		if share.UID.String() == named {
			return share.UID, nil
		}
	}
	switch {
	case len(shares) == 0:
		return uuid.Nil, lending.NewError(lending.CodeInvalidState,
			"no delivery matches any more; go back to the list and choose again")
	case len(shares) == 1 && named == "":
		return shares[0].UID, nil
	}
	return uuid.Nil, nil
}

// keepDraft stores a draft and redirects to its plan.
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
	return page.Redirect(ctx, outcome.Target)
}
