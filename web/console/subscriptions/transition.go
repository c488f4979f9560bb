package subscriptions

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/a-h/templ"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/paths"
	"drawbridge/views/subscriptions"
	"drawbridge/views/ui"
	"drawbridge/web/console/action"
	"drawbridge/web/console/page"
)

// maxWaiting is the highest count of waiting deliveries.
const maxWaiting = 10_000

// transition is a change of a subscription's state with a confirmation.
type transition struct {
	// path is the confirmation's path; name is the verb in the audit log and in the route's name.
	path, name                string
	title, button, icon, done string
	danger                    bool
	// reached reports that there is nothing to do, and already is the notice then; nil if
	// there always is something.
	reached func(s subscription.Subscription) bool
	already string
	change  func(
		s *subscription.Service, ctx context.Context, tx *postgres.Tx, uid uuid.UUID, by string,
	) (subscription.Subscription, error)
	// effects describes the consequences; waiting is the number of unsent deliveries.
	effects func(s subscription.Subscription, waiting int) []string
}

var pause = transition{
	path: paths.SubscriptionPause, name: "pause", title: "Pause the subscription", button: "Pause",
	icon: "pause", done: "Paused. Deliveries that fall due wait until it is resumed.",
	change: (*subscription.Service).Pause, already: "It is already paused.",
	reached: func(s subscription.Subscription) bool { return s.State == subscription.StatePaused },
	effects: func(_ subscription.Subscription, waiting int) []string {
		waits := "No delivery waits"
		if waiting > 0 {
			waits, _ = waitingWords(waiting)
		}
		return []string{
			"Nothing is sent to this endpoint until somebody resumes it. Requests under way are " +
				"finished.",
			"Events go on being recorded: their deliveries wait and nothing is lost.",
			waits + " now, retries included.",
		}
	},
}

var resume = transition{
	path: paths.SubscriptionResume, name: "resume", title: "Resume the subscription",
	button: "Resume", icon: "play", done: "Resumed. What waited goes out now.",
	change: (*subscription.Service).Resume, already: "This subscription is not paused.",
	reached: func(s subscription.Subscription) bool { return s.State != subscription.StatePaused },
	effects: func(s subscription.Subscription, waiting int) []string {
		if waiting == 0 {
			return []string{"Nothing waits. What happens from now on is sent at once."}
		}
		waits, goes := waitingWords(waiting)
		return []string{waits + ", and " + goes + " to " + s.Label() + " at once, oldest first."}
	},
}

var remove = transition{
	path: paths.SubscriptionDelete, name: "delete", title: "Delete the subscription",
	button: "Delete for good", icon: "trash-2", done: "Deleted. Its log is kept.", danger: true,
	change: (*subscription.Service).Delete,
	effects: func(s subscription.Subscription, waiting int) []string {
		cancelled := ui.Number(waiting) + " deliveries that have not gone out are cancelled."
		switch {
		case waiting == 0:
			cancelled = "No delivery waits, so none is cancelled."
		case waiting == 1:
			cancelled = "1 delivery that has not gone out is cancelled."
		case waiting > maxWaiting:
			cancelled = "More than " + ui.Number(maxWaiting) +
				" deliveries that have not gone out are cancelled."
		}
		return []string{
			"Nothing more is sent to " + s.Label() + ". This cannot be undone.", cancelled,
			"Its log and its versions are kept, and what was sent can still be looked up.",
			"Events that happen from now on do not reach it, not even if it is created again later.",
		}
	},
}

// waitingWords says how many deliveries wait, with the matching form of the verb "go".
func waitingWords(waiting int) (waits, goes string) {
	switch {
	case waiting == 0:
		return "Nothing waits so far; what falls due is held back", "goes"
	case waiting > maxWaiting:
		return "More than " + ui.Number(maxWaiting) + " deliveries wait", "go"
	case waiting == 1:
		return "1 delivery waits", "goes"
	}
	return ui.Number(waiting) + " deliveries wait", "go"
}

// waiting counts the unsent deliveries, to at most one more than maxWaiting.
func (f *Feature) waiting(ctx context.Context, s subscription.Subscription) (int, error) {
	total := 0
	for _, state := range []delivery.State{delivery.StatePending, delivery.StateRetrying} {
		count, err := f.Webhooks.Deliveries.Count(ctx, delivery.Filter{
			SubscriptionUID: s.UID, State: state,
		}, maxWaiting+1)
		if err != nil {
			return 0, err
		}
		total += count
	}
	return min(total, maxWaiting+1), nil
}

// transition pauses, resumes or deletes a subscription.
func (f *Feature) transition(t transition) action.Spec {
	return action.Spec{
		Path: t.path, Shown: "console.subscription." + t.name,
		Sent: "console.subscription." + t.name + "d", Role: operator.RoleOperator,
		Confirm: func(ctx echo.Context) (action.Form, error) {
			current, owner, err := f.subscription(ctx)
			if err != nil {
				return action.Form{}, err
			}
			here := paths.To(paths.Subscription, current.UID.String())
			called := cmp.Or(current.Name, current.Endpoint().Where())
			if t.reached != nil && t.reached(current) {
				return action.Form{}, action.Unneeded(t.already, here)
			}
			waiting, err := f.waiting(ctx.Request().Context(), current)
			if err != nil {
				return action.Form{}, err
			}
			fields := ui.Confirmation{
				Title: t.title, Effects: t.effects(current, waiting), Submit: t.button, Danger: t.danger,
				Action: paths.To(t.path, current.UID.String()), Cancel: here,
				Hidden: []ui.HiddenField{versionField(current)},
			}
			if t.danger {
				fields.Controls = []ui.Control{{
					Name: "confirm", Label: "Type " + called + " to confirm", Autocomplete: "off",
					Autofocus: true,
				}}
			}
			return action.Form{
				Place: under(current, t.title), Fields: fields,
				Page: func(fields ui.Confirmation) templ.Component {
					return subscriptions.Confirm(fields, current, owner, t.icon)
				},
				Change: action.Change{
					Done: t.done, Unchanged: t.already,
					Do: func(request context.Context, tx *postgres.Tx) (operator.Outcome, error) {
						typed := strings.TrimSpace(ctx.FormValue("confirm"))
						if t.danger && !strings.EqualFold(typed, called) {
							return operator.Outcome{},
								lending.Invalid("confirm", "Type it exactly as it is shown above.")
						}
						seen, _ := strconv.Atoi(ctx.FormValue("version")) // 0 saw any version
						before, err := f.Webhooks.Subscriptions.LockFrom(request, tx, current.UID, seen)
						if err != nil {
							return operator.Outcome{}, err
						}
						changed, err := t.change(f.Webhooks.Subscriptions, request, tx, current.UID,
							page.User(ctx).Email)
						if err != nil || changed.Version == before.Version {
							return operator.Outcome{Target: here}, err
						}
						return did(here, t.name, current, map[string]any{"state": before.State},
							map[string]any{"state": changed.State}), nil
					},
				},
			}, nil
		},
	}
}
