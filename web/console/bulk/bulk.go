// Package bulk is the console's pages about bulk re-sends.
package bulk

import (
	"context"
	"net/http"
	"net/url"

	resend "drawbridge/internal/webhook/bulk"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/views/bulk"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/action"
	"drawbridge/web/console/list"
	"drawbridge/web/console/page"
)

// Feature serves the pages.
type Feature struct {
	*list.Engine
	Webhooks *webhook.Services
	// Filter reads the filter of the list of deliveries from the query of its address. The
	// filter is not valid if wrong is not empty.
	Filter func(ctx echo.Context, query url.Values) (
		filter delivery.Filter, kept url.Values, wrong map[string]string)
}

// Routes lists the pages and changes.
func (f *Feature) Routes() []page.Route {
	const support = operator.RoleSupport
	return append(list.Routes(f.Engine, f.bulks()),
		page.Get(paths.BulkNew, "console.bulk.new", support, f.start),
		page.Post(paths.BulkNew, "console.bulk.draft", support, f.draft),
		page.Get(paths.Bulk, "console.bulk", support, f.bulk),
		page.Get(paths.BulkLive, "console.bulk.live", support, f.live),
		page.Get(paths.BulkItems, "console.bulk.items", support, f.items),
		page.Post(paths.BulkOptions, "console.bulk.options", support, f.amend),
		page.Post(paths.BulkConfirm, "console.bulk.confirm", support, f.confirm),
		page.Post(paths.BulkPause, "console.bulk.pause", support, f.move("pause")),
		page.Post(paths.BulkResume, "console.bulk.resume", support, f.move("resume")),
		page.Post(paths.BulkCancel, "console.bulk.cancel", support, f.move("cancel")),
	)
}

var place = page.Place{Section: ui.SectionBulks, Title: "Bulk re-sends"}

// bulks lists the bulk re-sends.
func (f *Feature) bulks() list.Spec[resend.Resend] {
	states := []resend.State{ // those in progress first
		resend.StateRunning, resend.StatePaused, resend.StateDraft, resend.StateFinished,
		resend.StateCancelled,
	}
	tabs := list.Options("All", states,
		func(state resend.State) string { return bulk.Chip(state).Word })
	return list.Spec[resend.Resend]{
		Name: "console.bulks", Path: paths.Bulks, Role: operator.RoleSupport, Place: place,
		Intro: "Many deliveries sent again at once: planned, confirmed, paced, and each with its " +
			"result.",
		One: "bulk re-send", Many: "bulk re-sends", Order: "Newest first",
		Tabs: list.Tabs{Name: "state", Options: tabs},
		Read: func(v *list.Values) list.Source[resend.Resend] {
			return list.Filtered(resend.Filter{State: list.OneOf(v, "state", states)},
				f.Webhooks.Bulk.List, f.Webhooks.Bulk.Count)
		},
		Table: bulk.Table, Buttons: bulk.StartButton(),
		NoMatch: ui.EmptyProps{
			Title: "No bulk re-send is in this state", Text: "Look at all of them, or begin one.",
			Href: paths.Bulks, Action: "Show all",
		},
		Empty: ui.EmptyProps{
			Icon: "rotate-ccw", Title: "No bulk re-sends yet",
			Text: "When an endpoint was down, recover what failed since then; when a subscription came " +
				"late, replay what it never got. For any other choice, filter the deliveries and select " +
				"those that match.",
			Href: paths.Deliveries, Action: "Choose deliveries",
		},
	}
}

// bulk shows one bulk re-send: a draft with its plan, or the progress of a confirmed one.
func (f *Feature) bulk(ctx echo.Context) error {
	found, err := page.Named(ctx, f.Webhooks.Bulk.Get)
	if err != nil {
		return err
	}
	if found.State == resend.StateDraft {
		return f.showDraft(ctx, found, draftForm{Status: http.StatusOK})
	}
	return f.showProgress(ctx, found)
}

// change returns a change of a bulk re-send; name is its action in the audit log.
func change(
	name string, uid uuid.UUID,
	do func(ctx context.Context, tx *postgres.Tx, entry *operator.Entry) error,
) action.Change {
	return action.Change{
		Do: func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
			entry := operator.NewEntry("bulk_resend."+name, uid.String(), nil, nil)
			err := do(ctx, tx, &entry)
			return operator.Did(paths.To(paths.Bulk, entry.Subject), entry), err
		},
	}
}
