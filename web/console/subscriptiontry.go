package console

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
	"drawbridge/views/subscriptions"
	"drawbridge/views/ui"
)

// checkAddress answers what is known of the URL in the form, for script.
func (c *Console) checkAddress(ctx echo.Context) error {
	check := c.checkURL(ctx.Request().Context(), ctx.FormValue("url"))
	return render(ctx, http.StatusOK, subscriptions.URLCheckRegion(check))
}

// checkURL finds out what can be known of an address without sending to it.
func (c *Console) checkURL(ctx context.Context, address string) subscriptions.URLCheck {
	found := c.Webhooks.CheckURL(ctx, strings.TrimSpace(address))
	var shown subscriptions.URLCheck
	for _, step := range found.Steps {
		if step.Verdict != webhook.CheckSkipped {
			shown.Items = append(shown.Items, subscriptions.CheckItem{
				Tone: checkTones[step.Verdict], Title: checkTitles[step.Name], Text: step.Text,
			})
		}
	}
	return shown
}

// checkTones and checkTitles word the steps of a check.
var (
	checkTones = map[webhook.CheckVerdict]ui.Tone{
		webhook.CheckGood: ui.Good, webhook.CheckWarning: ui.Warn,
		webhook.CheckRefused: ui.Bad,
	}
	checkTitles = map[string]string{
		"url": "Form", "name": "Name", "address": "Address", "connection": "Connection",
		"certificate": "Certificate",
	}
)

// tryForm sends one sample with the settings of the form and shows the answer.
// Nothing is saved; the audit log says that it was sent.
func (c *Console) tryForm(
	ctx echo.Context, form subscriptions.SubscriptionForm, current *webhook.Subscription,
) error {
	// The endpoint has as long to answer as in earnest, which may be longer than
	// the deadline for reading the form, which has arrived.
	_ = http.NewResponseController(ctx.Response()).SetReadDeadline(time.Time{})
	trial := webhook.Trial{
		Kind: lending.EventKind(form.TestEvent), NewSecret: form.SecretMode != secretKeep,
		Claim: func() error { return c.claimTrial(ctx) },
	}
	if current != nil {
		trial.UID = current.UID
	}
	var rows []subscriptions.HeaderField
	trial.Settings, rows = settingsOf(form, webhook.Watch{})
	if len(trial.Settings.Events) == 0 {
		trial.Settings.Events = []string{webhook.AllEvents} // the sample goes out whatever is chosen
	}
	result, err := c.Webhooks.Try(ctx.Request().Context(), trial)
	if errors.Is(err, errSentBefore) {
		faultForm(&form, lending.Invalid("test_event",
			"This test was sent a moment ago. Press the button again to send another."), nil)
		return c.showForm(ctx, http.StatusConflict, form)
	}
	if faultForm(&form, err, rows) {
		return c.showForm(ctx, http.StatusBadRequest, form)
	}
	if err != nil {
		return err
	}
	if err := c.auditTrial(ctx, form, result); err != nil {
		return err
	}
	form.Trial, form.Focus = trialView(form, result, c.DB.Now()), "try"
	return c.showForm(ctx, http.StatusOK, form)
}

// claimTrial lets a form be tried out once as it was shown. Saving it is another
// matter.
func (c *Console) claimTrial(ctx echo.Context) error {
	token, err := formToken(ctx)
	if err != nil {
		return err
	}
	_, err = c.actAs(ctx, uuid.NewSHA1(token, []byte("try")),
		func(context.Context, *postgres.Tx) (string, error) { return ctx.Request().URL.Path, nil })
	return err
}

func (c *Console) auditTrial(
	ctx echo.Context, form subscriptions.SubscriptionForm, result webhook.TrialResult,
) error {
	return c.inTx(ctx, func(_ context.Context, tx *postgres.Tx) error {
		return c.auditSubscription(ctx, tx, operator.Entry{
			Action: "subscription.try", Subject: form.UID, Reason: form.Reason,
			After: map[string]any{
				"url": form.URL, "event": form.TestEvent, "http_status": result.Status,
				"error_class": result.Class,
			},
		})
	})
}

// trialView words the outcome of a test before saving.
func trialView(
	form subscriptions.SubscriptionForm, result webhook.TrialResult, now time.Time,
) *subscriptions.TrialView {
	record := attemptRecord(form.URL, result.Attempt, now)
	view := &subscriptions.TrialView{
		Event: form.TestEvent, Body: result.Body, Attempt: attemptViews(webhook.DeliveryDetail{
			Attempts: []webhook.AttemptRecord{record},
		})[0],
	}
	if result.Delivered() {
		view.Diagnosis = ui.Diagnosis{
			Tone: ui.Good, Title: "The endpoint confirmed the test",
			Text: sentence("It answered " + ui.OutcomeWord(result.Status, "")),
		}
		if result.Generated {
			view.Diagnosis.Text += " It cannot have checked the signature or token: that was made " +
				"up for this test, and the real one is generated when you save."
		}
		return view
	}
	why := webhook.Diagnose(record)
	view.Diagnosis = ui.Diagnosis{
		Tone: ui.Bad, Title: "The endpoint did not confirm the test", Text: why.Summary,
		Owner: string(why.Owner), Next: why.Next,
	}
	if result.Generated && (result.Status == http.StatusUnauthorized ||
		result.Status == http.StatusForbidden) {
		view.Diagnosis.Text += " That is to be expected: the secret was made up for this test. Use " +
			"one that was agreed, or save and send a test event then."
	}
	return view
}

// attemptRecord is an attempt as the log would keep it.
func attemptRecord(url string, attempt webhook.Attempt, now time.Time) webhook.AttemptRecord {
	record := webhook.AttemptRecord{
		Number: 1, StartedAt: now.Add(-attempt.Timings.Total), Duration: attempt.Timings.Total,
		DNS: attempt.Timings.DNS, Connect: attempt.Timings.Connect, TLS: attempt.Timings.TLS,
		FirstByte: attempt.Timings.FirstByte, URL: url, HTTPStatus: attempt.Status,
		ErrorClass: attempt.Class, Error: attempt.Error, Note: attempt.Note,
		RequestHeaders: attempt.RequestHeaders, ResponseHeaders: attempt.ResponseHeaders,
		ResponseBody: attempt.ResponseBody,
	}
	if attempt.Address.IsValid() {
		record.Address = attempt.Address.String()
	}
	return record
}
