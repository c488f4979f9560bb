package console

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
	"drawbridge/views/paths"
	"drawbridge/views/subscriptions"
	"drawbridge/views/ui"
)

// action is a change of a subscription's state that asks first.
type action struct {
	// name is the last part of the path and the verb in the audit log.
	name, title, button, icon, done string
	danger                          bool
	// reached tells that there is nothing to do, which already says; nil where
	// there always is.
	reached func(s webhook.Subscription) bool
	already string
	change  func(
		s *webhook.Service, ctx context.Context, tx *postgres.Tx, uid uuid.UUID, by string,
	) (webhook.Subscription, error)
	// consequences say what will happen; waiting is how many have not gone out.
	consequences func(s webhook.Subscription, waiting int) []string
}

var pauseAction = action{
	name: "pause", title: "Pause the subscription", button: "Pause", icon: "pause",
	done:   "Paused. Deliveries that fall due wait until it is resumed.",
	change: (*webhook.Service).Pause, already: "It is already paused.",
	reached: func(s webhook.Subscription) bool { return s.State == webhook.StatePaused },
	consequences: func(_ webhook.Subscription, waiting int) []string {
		return []string{
			"Nothing is sent to this endpoint until somebody resumes it. Requests under way are " +
				"finished.",
			"Events go on being recorded: their deliveries wait and nothing is lost.",
			fmt.Sprintf("%s now, retries included.", waitNow(waiting)),
		}
	},
}

var resumeAction = action{
	name: "resume", title: "Resume the subscription", button: "Resume", icon: "play",
	done: "Resumed. What waited goes out now.", change: (*webhook.Service).Resume,
	already: "This subscription is not paused.",
	reached: func(s webhook.Subscription) bool { return s.State != webhook.StatePaused },
	consequences: func(s webhook.Subscription, waiting int) []string {
		if waiting == 0 {
			return []string{"Nothing waits. What happens from now on is sent at once."}
		}
		return []string{fmt.Sprintf("%s, and %s to %s at once, oldest first.",
			waitingWords(waiting), goes(waiting), ui.HostOf(s.URL))}
	},
}

var deleteAction = action{
	name: "delete", title: "Delete the subscription", button: "Delete for good", icon: "trash-2",
	done: "Deleted. Its log is kept.", danger: true, change: (*webhook.Service).Delete,
	consequences: func(s webhook.Subscription, waiting int) []string {
		return []string{
			fmt.Sprintf("Nothing more is sent to %s. This cannot be undone.", ui.HostOf(s.URL)),
			cancelledWords(waiting),
			"Its log and its versions are kept, and what was sent can still be looked up.",
			"Events that happen from now on do not reach it, not even if it is made anew later.",
		}
	},
}

func waitNow(waiting int) string {
	if waiting == 0 {
		return "No delivery waits"
	}
	return waitingWords(waiting)
}

func cancelledWords(waiting int) string {
	switch {
	case waiting == 0:
		return "No delivery waits, so none is cancelled."
	case waiting == 1:
		return "1 delivery that has not gone out is cancelled."
	case waiting > maxWaiting:
		return "More than " + ui.Number(maxWaiting) +
			" deliveries that have not gone out are cancelled."
	}
	return ui.Number(waiting) + " deliveries that have not gone out are cancelled."
}

// ask returns the handler that shows what an action will do.
func (c *Console) ask(a action) echo.HandlerFunc {
	return func(ctx echo.Context) error {
		current, err := c.liveSubscription(ctx)
		if err != nil {
			return err
		}
		if a.reached != nil && a.reached(current) {
			return c.leadBack(ctx, current, a.already)
		}
		return c.showAction(ctx, http.StatusOK, a, current, subscriptions.ActionForm{})
	}
}

func (c *Console) showAction(
	ctx echo.Context, status int, a action, s webhook.Subscription, form subscriptions.ActionForm,
) error {
	waiting, err := c.waiting(ctx.Request().Context(), s)
	if err != nil {
		return err
	}
	if form.Partner, err = c.partnerOf(ctx, s); err != nil {
		return err
	}
	form.UID, form.URL, form.Action = s.UID.String(), s.URL, a.name
	form.Consequences = a.consequences(s, waiting)
	form.Button, form.Icon, form.Danger = a.button, a.icon, a.danger
	if a.danger {
		form.Confirm = ui.HostOf(s.URL)
	}
	if form.Frame, err = c.subscriptionFrame(ctx, s, a.title); err != nil {
		return err
	}
	return render(ctx, status, subscriptions.ActionPage(form))
}

// perform returns the handler that does it.
func (c *Console) perform(a action) echo.HandlerFunc {
	return func(ctx echo.Context) error {
		current, err := c.liveSubscription(ctx)
		if err != nil {
			return err
		}
		reason, typed := ctx.FormValue("reason"), strings.TrimSpace(ctx.FormValue("confirm"))
		if a.danger && !strings.EqualFold(typed, ui.HostOf(current.URL)) {
			return c.showAction(ctx, http.StatusBadRequest, a, current, subscriptions.ActionForm{
				Reason: reason, Typed: typed, Fault: "Type the host exactly as it stands above.",
			})
		}
		done := a.done
		target := paths.To(paths.Subscription, current.UID.String())
		_, err = c.act(ctx, func(request context.Context, tx *postgres.Tx) (string, error) {
			changed, err := a.change(c.Webhooks, request, tx, current.UID, currentUser(ctx).Email)
			if err != nil {
				return "", err
			}
			if changed.Version == current.Version {
				done = a.already
				return target, nil
			}
			return target, c.auditSubscription(ctx, tx, operator.Entry{
				Action: "subscription." + a.name, Subject: current.UID.String(), Reason: reason,
				Before: map[string]any{"state": current.State},
				After:  map[string]any{"state": changed.State},
			})
		})
		if err != nil {
			return err
		}
		return c.leadBack(ctx, current, done)
	}
}

// leadBack leads to the subscription, which says what became of an action.
func (c *Console) leadBack(ctx echo.Context, s webhook.Subscription, notice string) error {
	c.leaveNotice(ctx, notice)
	return leadTo(ctx, paths.To(paths.Subscription, s.UID.String()))
}
