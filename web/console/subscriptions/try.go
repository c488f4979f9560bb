package subscriptions

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/diagnose"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/subscriptions"
	"drawbridge/views/ui"
	"drawbridge/web/console/action"
)

// try sends one sample with the form's settings and shows the answer. Nothing is saved. The
// sample is written to the audit log before it is sent, since the process may not be there
// afterwards. A rendered form can be tried only once; saving it is separate.
func (f editor) try(
	ctx echo.Context, form subscriptions.Form, current *subscription.Subscription,
) error {
	trial := subscription.Trial{
		Kind: lending.EventKind(form.TestEvent), NewSecret: form.SecretMode != secretKeep,
		Claim: func() error {
			token, err := action.FormToken(ctx)
			if err != nil {
				return err
			}
			_, err = f.CommitAs(ctx, uuid.NewSHA1(token, []byte("try")), action.Change{
				Do: func(context.Context, *postgres.Tx) (operator.Outcome, error) {
					return operator.Did(ctx.Request().URL.Path, operator.Entry{
						Action: "subscription.try", SubjectKind: "subscription", Subject: form.UID,
						After: map[string]any{"url": form.URL, "event": form.TestEvent},
					}), nil
				},
			})
			return err
		},
	}
	if current != nil {
		trial.UID = current.UID
	}
	var rows []subscriptions.HeaderField
	trial.Settings, rows = settingsOf(form, subscription.Watch{})
	if len(trial.Settings.Events) == 0 {
		trial.Settings.Events = []string{subscription.AllEvents} // send the sample whatever is chosen
	}
	result, err := f.Webhooks.Subscriptions.Try(ctx.Request().Context(), trial)
	if errors.Is(err, operator.ErrRepeated) {
		err = lending.Invalid("test_event",
			"This test was sent a moment ago. Press the button again to send another.").WithCause(err)
	}
	if err != nil {
		return f.showWrong(ctx, form, err, rows)
	}
	form.Trial, form.Focus = trialOf(form, result, f.DB.Now()), "try"
	if !result.Secret.IsZero() {
		// Save exactly what was tested.
		form.SecretMode, form.Secret = secretPaste, result.Secret.Reveal()
		form.Trial.Secret = form.Secret
	}
	return f.showForm(ctx, http.StatusOK, form)
}

// trialOf presents a sent sample as the log would.
func trialOf(
	form subscriptions.Form, result subscription.TrialResult, now time.Time,
) *subscriptions.Trial {
	sent := delivery.Attempt{
		Number: 1, StartedAt: now.Add(-result.Timings.Total), Duration: result.Timings.Total,
		DNS: result.Timings.DNS, Connect: result.Timings.Connect, TLS: result.Timings.TLS,
		FirstByte: result.Timings.FirstByte, URL: form.URL, HTTPStatus: result.Status,
		ErrorClass: result.Class, Error: result.Error, Note: result.Note,
		RequestHeaders: result.RequestHeaders, ResponseHeaders: result.ResponseHeaders,
		ResponseBody: result.ResponseBody,
	}
	if result.Address.IsValid() {
		sent.Address = result.Address.String()
	}
	trial := &subscriptions.Trial{
		Event: form.TestEvent, Body: result.Body,
		Attempt: ui.AttemptsOf([]delivery.Attempt{sent})[0],
	}
	if result.Delivered() {
		trial.Diagnosis = ui.Diagnosis{
			Tone: ui.Good, Title: "The endpoint confirmed the test",
			Text: ui.Sentence("It answered " + ui.OutcomeWord(result.Status, "")),
		}
		if result.Generated {
			trial.Diagnosis.Text += " It cannot have checked the signature or token yet, which was " +
				"made up a moment ago."
		}
		return trial
	}
	why := diagnose.Attempt(sent)
	trial.Diagnosis = ui.Diagnosis{
		Tone: ui.Bad, Title: "The endpoint did not confirm the test", Text: why.Summary,
		Owner: string(why.Owner), Next: why.Next,
	}
	if result.Generated && (result.Status == http.StatusUnauthorized ||
		result.Status == http.StatusForbidden) {
		trial.Diagnosis.Text += " That is to be expected: the secret was made up a moment ago, and " +
			"the partner does not know it."
	}
	return trial
}
