package bulk

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	resend "drawbridge/internal/webhook/bulk"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/bulk"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/list"
	"drawbridge/web/console/page"
)

// showProgress shows the progress of a confirmed bulk re-send.
func (f *Feature) showProgress(ctx echo.Context, of resend.Resend) error {
	filter, err := readItemFilter(ctx.QueryParams())
	if err != nil {
		return err
	}
	shown, err := f.progress(ctx.Request().Context(), of.UID, filter)
	if err != nil {
		return err
	}
	if page.IsFragment(ctx) {
		return page.Render(ctx, http.StatusOK, bulk.ProgressRegion(shown))
	}
	shown.Confirming = ctx.QueryParam("cancel") != ""
	here := place.Under(paths.Bulks, bulk.Title(of.Scope))
	here.Live = true
	return f.Show(ctx, http.StatusOK, here, bulk.ProgressOf(shown))
}

// live streams the page's live region.
func (f *Feature) live(ctx echo.Context) error {
	uid, err := page.UID(ctx)
	if err != nil {
		return err
	}
	filter, err := readItemFilter(ctx.QueryParams())
	if err != nil {
		return err
	}
	return f.Stream(ctx, func(request context.Context) ([]byte, error) {
		shown, err := f.progress(request, uid, filter)
		if err != nil {
			return nil, err
		}
		return page.HTML(request, bulk.ProgressRegion(shown))
	})
}

// readItemFilter reads from the address which results to show.
func readItemFilter(query url.Values) (resend.ItemFilter, error) {
	filter := resend.ItemFilter{State: resend.ItemState(query.Get("outcome")), Limit: list.PageSize}
	if text := query.Get("after"); text != "" {
		after, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return filter, lending.Invalid("after", `"after" must be a position in the results`)
		}
		filter.After = int(after)
	}
	return filter, nil
}

func (f *Feature) progress(
	ctx context.Context, uid uuid.UUID, filter resend.ItemFilter,
) (bulk.Progress, error) {
	found, err := f.Webhooks.Bulk.Get(ctx, uid)
	if err != nil {
		return bulk.Progress{}, err
	}
	shown := bulk.Progress{
		Resend: found, Outcome: filter.State, Outcomes: outcomeTabs(uid, found.Counts, filter.State),
	}
	if shown.Targets, err = f.Webhooks.Bulk.Targets(ctx, uid); err != nil {
		return shown, err
	}
	longest := 0
	for _, target := range shown.Targets {
		if target.State != subscription.StatePaused {
			longest = max(longest, target.Waiting*int(time.Second)/target.PaceOf(found.Options.Pace))
		}
	}
	shown.Remaining = time.Duration(longest)
	items, next, err := f.Webhooks.Bulk.Items(ctx, uid, filter)
	if err != nil {
		return shown, err
	}
	shown.Items = items
	query, here := url.Values{}, paths.To(paths.Bulk, uid.String())
	if filter.State != "" {
		query.Set("outcome", string(filter.State))
	}
	if filter.After > 0 {
		shown.First = paths.With(here, query)
	}
	if next > 0 {
		query.Set("after", strconv.Itoa(next))
		shown.More = paths.With(here, query)
		query.Del("after")
	}
	if filter.After > 0 {
		query.Set("after", strconv.Itoa(filter.After))
	}
	shown.PollURL, shown.StreamURL = paths.With(here, query), here+"/live?"+query.Encode()
	return shown, nil
}

func outcomeTabs(uid uuid.UUID, counts resend.Counts, current resend.ItemState) []ui.Tab {
	tabs := []ui.Tab{{
		Label: "All " + ui.Number(counts.All()), Href: paths.To(paths.Bulk, uid.String()),
		Current: current == "",
	}}
	for _, state := range resend.ItemStates() {
		if counts.Of(state) == 0 && state != current {
			continue
		}
		tabs = append(tabs, ui.Tab{
			Label: bulk.ItemChip(state).Word + " " + ui.Number(counts.Of(state)),
			Href: paths.With(paths.To(paths.Bulk, uid.String()),
				url.Values{"outcome": {string(state)}}) + "#results",
			Current: state == current,
		})
	}
	return tabs
}

// move returns the handler of a change of state, named as in the audit log: pause, resume
// or cancel. Under htmx the page stays and shows the new state.
func (f *Feature) move(name string) echo.HandlerFunc {
	return func(ctx echo.Context) error {
		before, err := page.Named(ctx, f.Webhooks.Bulk.Get)
		if err != nil {
			return err
		}
		uid, done := before.UID, ""
		changed := change(name, uid,
			func(request context.Context, tx *postgres.Tx, _ *operator.Entry) error {
				switch name {
				case "pause":
					done = "Paused. Deliveries that were sent go on."
					return f.Webhooks.Bulk.Pause(request, tx, uid)
				case "resume":
					done = "Resumed."
					return f.Webhooks.Bulk.Resume(request, tx, uid)
				}
				count, err := f.Webhooks.Bulk.Cancel(request, tx, uid)
				done = "Cancelled: " + ui.Plural(count, "delivery was", "deliveries were") + " withdrawn."
				return err
			})
		if before.State == resend.StateDraft { // a discarded draft is deleted
			discard := changed.Do
			changed.Do = func(request context.Context, tx *postgres.Tx) (operator.Outcome, error) {
				outcome, err := discard(request, tx)
				outcome.Target = paths.Bulks
				return outcome, err
			}
		}
		outcome, err := f.Commit(ctx, changed)
		if err != nil {
			return err
		}
		found, err := f.Webhooks.Bulk.Get(ctx.Request().Context(), uid)
		switch {
		case lending.ErrorCode(err) == lending.CodeNotFound: // it was a draft
			f.LeaveNotice(ctx, "The draft is discarded; nothing was sent.")
			return page.Redirect(ctx, paths.Bulks)
		case err != nil:
			return err
		case page.IsFragment(ctx):
			return f.showProgress(ctx, found)
		}
		f.LeaveNotice(ctx, done)
		return page.Redirect(ctx, outcome.Target)
	}
}

// items sends the results as a file.
func (f *Feature) items(ctx echo.Context) error {
	found, err := page.Named(ctx, f.Webhooks.Bulk.Get)
	if err != nil {
		return err
	}
	request, uid := ctx.Request().Context(), found.UID
	filter, more := resend.ItemFilter{Limit: postgres.MaxPage}, true
	return list.File[resend.Item]{
		Name: "bulk-resend", Action: "bulk_resend.export", Subject: "bulk_resend",
		Columns: []string{
			"position", "state", "skip_reason", "event", "status", "event_uid", "occurred_at",
			"application_uid", "subscription_uid", "url", "delivery_uid", "new_delivery_uid",
			"http_status", "error_class",
		},
		Cells: func(item resend.Item) []string {
			return []string{
				strconv.Itoa(item.Position), string(item.State), string(ui.Value(item.SkipReason)),
				string(item.Event), item.Status, item.EventUID.String(), list.CellTime(item.EventAt),
				page.FormatUID(ui.Value(item.ApplicationUID)), item.SubscriptionUID.String(), item.URL,
				page.FormatUID(ui.Value(item.DeliveryUID)), page.FormatUID(ui.Value(item.NewUID)),
				list.CellNumber(int64(ui.Value(item.HTTPStatus))), ui.Value(item.ErrorClass),
			}
		},
	}.Send(ctx, f.Engine.Engine, url.Values{"bulk": {uid.String()}}, func() ([]resend.Item, error) {
		if !more {
			return nil, nil
		}
		items, next, err := f.Webhooks.Bulk.Items(request, uid, filter)
		filter.After, more = next, next > 0
		return items, err
	})
}
