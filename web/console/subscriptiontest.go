package console

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
	"drawbridge/views/paths"
	"drawbridge/views/subscriptions"
	"drawbridge/views/ui"
)

// testPatience is how long the page of a test waits for its first outcome, so
// that it is there without script too.
const testPatience = 3 * time.Second

// testForm shows the form that sends a test event.
func (c *Console) testForm(ctx echo.Context) error {
	current, err := c.liveSubscription(ctx)
	if err != nil {
		return err
	}
	return c.showTest(ctx, http.StatusOK, current,
		subscriptions.TestForm{Event: string(lending.EventStatusUpdated)})
}

func (c *Console) showTest(
	ctx echo.Context, status int, s webhook.Subscription, form subscriptions.TestForm,
) error {
	form.UID, form.URL = s.UID.String(), s.URL
	form.Paused = s.State == webhook.StatePaused
	for _, kind := range lending.AllEventKinds() {
		form.Events = append(form.Events, ui.Option{
			Value: string(kind), Label: kind.Title(),
		})
	}
	var err error
	if form.Partner, err = c.partnerOf(ctx, s); err != nil {
		return err
	}
	form.Frame, err = c.subscriptionFrame(ctx, s, "Send a test event")
	if err != nil {
		return err
	}
	form.Live = form.Result != nil && !form.Result.Done
	return render(ctx, status, subscriptions.TestPage(form))
}

// sendTest sends a test event and leads to its result.
func (c *Console) sendTest(ctx echo.Context) error {
	current, err := c.liveSubscription(ctx)
	if err != nil {
		return err
	}
	kind := lending.EventKind(ctx.FormValue("event"))
	if fault := unknownKind(kind); fault != "" {
		return c.showTest(ctx, http.StatusBadRequest, current,
			subscriptions.TestForm{Event: string(kind), Fault: fault})
	}
	target, err := c.act(ctx, func(request context.Context, tx *postgres.Tx) (string, error) {
		delivery, err := c.Webhooks.Test(request, tx, current.UID, kind)
		if err != nil {
			return "", err
		}
		result := paths.To(paths.SubscriptionResult, current.UID.String(), delivery.String())
		return result, c.auditSubscription(ctx, tx, operator.Entry{
			Action: "subscription.test", Subject: current.UID.String(),
			After: map[string]any{"delivery_uid": delivery, "event": kind},
		})
	})
	if err != nil {
		return err
	}
	return leadTo(ctx, target)
}

// testResult shows what became of a test event. It waits a little for the first
// outcome.
func (c *Console) testResult(ctx echo.Context) error {
	current, err := c.liveSubscription(ctx)
	if err != nil {
		return err
	}
	result, err := c.awaitTest(ctx, current)
	if err != nil {
		return err
	}
	if isFragment(ctx) {
		return render(ctx, http.StatusOK, subscriptions.TestRegion(result))
	}
	return c.showTest(ctx, http.StatusOK, current, subscriptions.TestForm{
		Event: string(result.Delivery.Event), Result: &result,
	})
}

// awaitTest looks at a test event until it has an outcome or patience ends.
func (c *Console) awaitTest(
	ctx echo.Context, s webhook.Subscription,
) (subscriptions.TestResult, error) {
	request, cancel := context.WithTimeout(ctx.Request().Context(), testPatience)
	defer cancel()
	ticker := time.NewTicker(c.LiveEvery / 10)
	defer ticker.Stop()
	for {
		result, err := c.lookAtTest(ctx, s)
		if err != nil || result.Done || len(result.Attempts) > 0 {
			return result, err
		}
		select {
		case <-request.Done():
			return result, nil
		case <-ticker.C:
		}
	}
}

// testLive streams the result as it changes.
func (c *Console) testLive(ctx echo.Context) error {
	current, err := c.liveSubscription(ctx)
	if err != nil {
		return err
	}
	return c.Stream(ctx, func(request context.Context) ([]byte, error) {
		result, err := c.lookAtTest(ctx, current)
		if err != nil {
			return nil, err
		}
		return renderHTML(request, subscriptions.TestRegion(result))
	})
}

// lookAtTest loads the test event that the path names.
func (c *Console) lookAtTest(
	ctx echo.Context, s webhook.Subscription,
) (subscriptions.TestResult, error) {
	uid, err := uuid.Parse(ctx.Param("delivery"))
	if err != nil {
		return subscriptions.TestResult{}, errNoTest()
	}
	detail, err := c.Webhooks.Delivery(ctx.Request().Context(), uid)
	if err != nil {
		return subscriptions.TestResult{}, err
	}
	if detail.SubscriptionUID != s.UID || !detail.Test {
		return subscriptions.TestResult{}, errNoTest()
	}
	here := paths.To(paths.SubscriptionResult, s.UID.String(), uid.String())
	result := subscriptions.TestResult{
		Delivery: deliveryRow(detail.Delivery), Attempts: attemptViews(detail), Body: detail.Body,
		Done: detail.State.IsFinal(), StreamURL: here + "/live", PollURL: here,
		Diagnosis: diagnosis(detail, s.State),
	}
	if result.Diagnosis.Title == "" {
		result.Diagnosis = ui.Diagnosis{
			Tone: ui.Calm, Title: "On its way", Text: "A worker sends it in a moment.",
		}
	}
	if detail.State == webhook.DeliveryDelivered {
		result.Diagnosis.Title = "The endpoint confirmed the test event"
	}
	result.Diagnosis.Text = strings.TrimSpace(result.Diagnosis.Text)
	return result, nil
}

func errNoTest() error {
	return lending.NewError(lending.CodeNotFound,
		"There is no such test event of this subscription.")
}
