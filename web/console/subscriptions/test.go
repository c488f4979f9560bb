package subscriptions

import (
	"context"
	"net/http"
	"time"

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

// testTimeout is how long the result page of a test waits for the first outcome, so that
// it is shown even without script.
const testTimeout = 3 * time.Second

// test sends a test event and redirects to its result.
func (f *Feature) test() action.Spec {
	return action.Spec{
		Path: paths.SubscriptionTest, Shown: "console.subscription.test",
		Sent: "console.subscription.test.send", Role: operator.RoleOperator,
		Confirm: func(ctx echo.Context) (action.Form, error) {
			current, owner, err := f.subscription(ctx)
			if err != nil {
				return action.Form{}, err
			}
			form := testForm(current, lending.EventStatusUpdated)
			form.Page = func(fields ui.Confirmation) templ.Component {
				return subscriptions.Test(fields, current, owner, nil)
			}
			form.Do = func(request context.Context, tx *postgres.Tx) (operator.Outcome, error) {
				kind := lending.EventKind(ctx.FormValue("event"))
				if !kind.IsKnown() {
					return operator.Outcome{},
						lending.Invalid("event", "There is no such event; choose one from the list.")
				}
				sent, err := f.Webhooks.Deliveries.Test(request, tx, current.UID, kind)
				return did(paths.To(paths.SubscriptionResult, current.UID.String(), sent.String()),
					"test", current, nil, map[string]any{"delivery_uid": sent, "event": kind}), err
			}
			return form, nil
		},
	}
}

// testForm asks which event to send.
func testForm(s subscription.Subscription, kind lending.EventKind) action.Form {
	event := ui.Control{Name: "event", Label: "Event", Value: string(kind)}
	for _, kind := range lending.AllEventKinds() {
		event.Options = append(event.Options, ui.EventOption(kind))
	}
	fields := ui.Confirmation{
		Title: "Send a test event", Controls: []ui.Control{event}, NoReason: true,
		Action: paths.To(paths.SubscriptionTest, s.UID.String()),
		Cancel: paths.To(paths.Subscription, s.UID.String()),
	}
	return action.Form{Place: under(s, fields.Title), Fields: fields}
}

// showTest shows the result of a test event. It waits a little for the first outcome.
func (f *Feature) showTest(ctx echo.Context) error {
	current, owner, err := f.subscription(ctx)
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx.Request().Context(), testTimeout)
	defer cancel()
	ticker := time.NewTicker(f.LiveEvery / 10)
	defer ticker.Stop()
	result, err := f.lookAtTest(ctx, current)
	for err == nil && !result.State.IsFinal() && len(result.Attempts) == 0 && waiting.Err() == nil {
		select {
		case <-waiting.Done():
		case <-ticker.C:
			result, err = f.lookAtTest(ctx, current)
		}
	}
	if err != nil {
		return err
	}
	if page.IsFragment(ctx) {
		return page.Render(ctx, http.StatusOK, subscriptions.TestRegion(result, current.State))
	}
	form := testForm(current, result.Event)
	form.Place.Live = !result.State.IsFinal()
	return f.Show(ctx, http.StatusOK, form.Place,
		subscriptions.Test(form.Fields, current, owner, &result))
}

// streamTest streams the result page's live region.
func (f *Feature) streamTest(ctx echo.Context) error {
	current, _, err := f.subscription(ctx)
	if err != nil {
		return err
	}
	return f.Stream(ctx, func(request context.Context) ([]byte, error) {
		result, err := f.lookAtTest(ctx, current)
		if err != nil {
			return nil, err
		}
		return page.HTML(request, subscriptions.TestRegion(result, current.State))
	})
}

// lookAtTest loads the test event that the path names.
func (f *Feature) lookAtTest(
	ctx echo.Context, s subscription.Subscription,
) (delivery.Detail, error) {
	none := lending.NewError(lending.CodeNotFound,
		"There is no such test event of this subscription.")
	uid, err := uuid.Parse(ctx.Param("delivery"))
	if err != nil {
		return delivery.Detail{}, none
	}
	detail, err := f.Webhooks.Deliveries.Get(ctx.Request().Context(), uid)
	if err == nil && (detail.SubscriptionUID != s.UID || !detail.Test) {
		return detail, none
	}
	return detail, err
}
