package operations

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/alert"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/operations"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/action"
	"drawbridge/web/console/list"
	"drawbridge/web/console/page"
)

var alertsPlace = page.Place{Section: ui.SectionAlerts, Title: "Needs attention"}

// alerts lists what needs a person.
func (f *Feature) alerts() list.Spec[alert.Item] {
	kinds := list.Options("Anything", alert.Kinds(), ui.AlertKind)
	return list.Spec[alert.Item]{
		Name: "console.attention", Path: paths.Alerts, Role: operator.RoleSupport,
		Place: alertsPlace,
		Intro: "What went wrong or is missing, one row per alert. " +
			"A row closes by itself when its cause is gone.",
		One: "alert", Many: "alerts", Order: "last opened first", SummaryBelow: true,
		Tabs: list.Tabs{Name: "state", Default: string(alert.Waiting), Options: []ui.Option{
			{Label: "Open"},
			{Value: string(alert.Snoozed), Label: "Snoozed"},
			{Value: string(alert.Closed), Label: "Closed"},
			{Value: "all", Label: "All"},
		}},
		Filters: []list.Filter{
			{Name: "kind", Label: "What", Chip: "What: ", Kind: list.Choice, Options: kinds},
			{Name: "owner", Label: "Owner", Chip: "Owner: ", Kind: list.Choice, Options: []ui.Option{
				{Label: "Anybody"}, {Value: "me", Label: "Me"}, {Value: "nobody", Label: "Nobody"},
			}},
		},
		Read: func(v *list.Values) list.Source[alert.Item] {
			filter := alert.Filter{Kind: list.OneOf(v, "kind", alert.Kinds())}
			states := []alert.State{alert.Snoozed, alert.Closed, "all"}
			if filter.State = list.OneOf(v, "state", states); filter.State == "" {
				filter.State = alert.Waiting
			} else if filter.State == "all" {
				filter.State = ""
			}
			switch list.OneOf(v, "owner", []string{"me", "nobody"}) {
			case "me":
				filter.Owner = v.User.Email
			case "nobody":
				filter.Unowned = true
			}
			return list.Filtered(filter, f.Alerts.List, f.Alerts.Count)
		},
		Table: func(items []alert.Item) ui.TableProps[alert.Item] {
			return operations.AlertTable(items, f.DB.Now())
		},
		NoMatch: ui.EmptyProps{
			Title: "Nothing matches these filters",
			Text:  "Remove a filter, or look at what is snoozed or closed.",
		},
		Empty: ui.EmptyProps{
			Icon: "circle-check", Title: "Nothing needs you",
			Text: "Failed deliveries, failing endpoints, expiring certificates, overdue deliveries " +
				"and failed e-mails appear here by themselves.",
		},
	}
}

// alert shows one alert and what can be done about it.
func (f *Feature) alert(ctx echo.Context) error { return f.showAlert(ctx, nil) }

// showAlert shows an alert, and the errors of a submitted form, nil if there are none.
func (f *Feature) showAlert(ctx echo.Context, refusal *lending.Error) error {
	item, err := page.Named(ctx, f.Alerts.Get)
	if err != nil {
		return err
	}
	form := operations.NoteForm{
		Note: ctx.FormValue("note"), Wrong: map[string]string{}, Seen: action.Seen(item.Seen()),
	}
	status := http.StatusOK
	if refusal != nil {
		status = f.Status(refusal.Code)
		for _, detail := range refusal.Details {
			form.Wrong[detail.Field] = page.Sentence(detail.Message)
		}
		if len(refusal.Details) == 0 {
			form.Refused = page.Sentence(refusal.Message)
		}
	}
	if item.ClosedAt != nil && refusal != nil {
		form.Refused = closedMeanwhile(ctx, item, form.Note)
	}
	return f.Show(ctx, status, alertsPlace.Under(paths.Alerts, ui.AlertKind(item.Kind)),
		operations.Alert(item, f.DB.Now(), form))
}

// closedMeanwhile tells a user whose form concerned an alert that was closed meanwhile who
// closed it, and returns the text that the user had typed.
func closedMeanwhile(ctx echo.Context, item alert.Item, note string) string {
	said := item.ClosedBy + " closed this at "
	if item.ClosedBy == alert.BySystem {
		said = "The cause was gone, so this closed by itself at "
	}
	said += ui.Absolute(ctx.Request().Context(), *item.ClosedAt) + "."
	if note != "" {
		said += " Your note was not kept: “" + note + "”"
	}
	return said
}

// alertDone is the notice after each action on an alert.
var alertDone = map[string]string{
	"take": "Assigned to you.", "release": "No longer assigned to anybody.",
	"snooze": "Snoozed.", "wake": "No longer snoozed.",
	"resolve": "Resolved. Should the cause turn up again, it is opened again.",
}

// actOnAlert takes, releases, snoozes, wakes or resolves an alert. An error in a field is
// shown beside the field.
func (f *Feature) actOnAlert(ctx echo.Context) error {
	uid, err := page.UID(ctx)
	if err != nil {
		return err
	}
	target := paths.To(paths.Alert, uid.String())
	if back := ctx.FormValue("back"); back != "" {
		target = page.SafeNext(back)
	}
	_, err = f.Commit(ctx, action.Change{
		Done: alertDone[ctx.FormValue("act")],
		Do: func(_ context.Context, tx *postgres.Tx) (operator.Outcome, error) {
			outcome, err := f.changeAlert(ctx, tx, uid)
			outcome.Target = target
			return outcome, err
		},
	})
	labels := map[string]string{"note": "The note", "until": "The time"}
	refusal, ok := errors.AsType[*lending.Error](page.WithLabels(err, labels))
	if ok && (len(refusal.Details) > 0 || refusal.Code == lending.CodeInvalidState) {
		return f.showAlert(ctx, refusal)
	}
	if err != nil {
		return err
	}
	return page.Redirect(ctx, target)
}

// changeAlert makes the change of an alert that the form asks for.
func (f *Feature) changeAlert(
	ctx echo.Context, tx *postgres.Tx, uid uuid.UUID,
) (operator.Outcome, error) {
	request, by := ctx.Request().Context(), page.User(ctx).Email
	switch ctx.FormValue("act") {
	case "take":
		return f.Alerts.Take(request, tx, uid, by)
	case "release":
		return f.Alerts.Release(request, tx, uid)
	case "wake":
		return f.Alerts.Wake(request, tx, uid)
	case "snooze":
		length, err := time.ParseDuration(ctx.FormValue("for"))
		if err != nil {
			return operator.Outcome{},
				lending.Invalid("until", "choose how long to snooze the alert")
		}
		return f.Alerts.Snooze(request, tx, uid, tx.Now.Add(length))
	case "resolve":
		item, err := f.Alerts.Lock(request, tx, uid)
		if err != nil {
			return operator.Outcome{}, err
		}
		now := item.Seen()
		if seen := cmp.Or(ctx.FormValue(action.SeenField), now); seen != now && item.ClosedAt == nil {
			return operator.Outcome{}, action.Stale(seen, now)
		}
		return f.Alerts.Resolve(request, tx, uid, ctx.FormValue("note"), by)
	}
	return operator.Outcome{}, lending.NewError(lending.CodeValidation, "There is no such action.")
}
