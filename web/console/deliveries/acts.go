package deliveries

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/diagnose"
	"drawbridge/views/deliveries"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/action"
	"drawbridge/web/console/page"
)

// resendForm shows the re-send form on a page of its own.
func (f *Feature) resendForm(ctx echo.Context) error {
	uid, err := page.UID(ctx)
	if err != nil {
		return err
	}
	return f.showResend(ctx, uid, http.StatusOK, "", "")
}

// resend creates a new delivery of the same event. Under htmx the page stays and shows the
// new delivery among the re-sends; otherwise the new delivery's page opens.
func (f *Feature) resend(ctx echo.Context) error {
	uid, err := page.UID(ctx)
	if err != nil {
		return err
	}
	by, reason := page.User(ctx).Email, ctx.FormValue("reason")
	change := action.Change{
		Do: func(request context.Context, tx *postgres.Tx) (operator.Outcome, error) {
			made, err := f.Webhooks.Deliveries.Resend(request, tx, []uuid.UUID{uid}, by, reason)
			if err != nil {
				return operator.Outcome{}, err
			}
			return operator.Did(paths.To(paths.Delivery, made[0].String()),
				operator.NewEntry("delivery.resend", uid.String(), nil,
					map[string]any{"delivery_uid": made[0]})), nil
		},
	}
	if !page.IsFragment(ctx) {
		change.Done = "Re-sent. This is the new delivery."
	}
	outcome, err := f.Commit(ctx, change)
	switch {
	case lending.ErrorCode(err) == lending.CodeValidation && !page.IsFragment(ctx):
		return f.showResend(ctx, uid, http.StatusBadRequest, reason, page.Sentence(err.Error()))
	case err != nil:
		return err
	case !page.IsFragment(ctx):
		return page.Redirect(ctx, outcome.Target)
	}
	shown, err := f.load(ctx.Request().Context(), uid)
	if err != nil {
		return err
	}
	// The page's script gets the notice, the link to the new delivery, and the token for the
	// form that stays in the dialog.
	trigger, err := json.Marshal(map[string]any{
		"console:done": map[string]string{
			"text": "Re-sent as a new delivery", "href": outcome.Target, "label": "Open",
			page.TokenField: uuid.NewString(),
		},
	})
	if err != nil {
		return fmt.Errorf("announcing what was done: %w", err)
	}
	ctx.Response().Header().Set("HX-Trigger", string(trigger))
	return page.Render(ctx, http.StatusOK, deliveries.Region(shown))
}

func (f *Feature) showResend(
	ctx echo.Context, uid uuid.UUID, status int, reason, problem string,
) error {
	form, err := f.loadResend(ctx.Request().Context(), uid)
	if err != nil {
		return err
	}
	form.Reason, form.Error = reason, problem
	one := place.Under(paths.Deliveries, ui.DeliveryLabel(form.Delivery.Delivery))
	here := one.Under(paths.To(paths.Delivery, uid.String()), "Re-send this delivery")
	here.Here = "Re-send"
	return f.Show(ctx, status, here, deliveries.ResendForm(form))
}

// cancel asks for confirmation with the consequences, and then cancels those of the chosen
// deliveries that are still waiting.
func (f *Feature) cancel(ctx echo.Context) error {
	chosen, err := page.Ticked(ctx, "delivery", postgres.MaxPage, "deliveries", "a delivery")
	if err != nil {
		return err
	}
	form := deliveries.CancelForm{
		Filter: ctx.FormValue("filter"), Back: paths.Deliveries,
		Reason: strings.TrimSpace(ctx.FormValue("reason")),
	}
	if query, err := url.ParseQuery(form.Filter); err == nil {
		form.Back = paths.With(paths.Deliveries, query)
	}
	switch {
	case len(chosen) == 0:
		f.LeaveNotice(ctx, "Tick the deliveries to cancel first.")
		return page.Redirect(ctx, form.Back)
	case ctx.FormValue("confirmed") == "":
		return f.confirmCancel(ctx, http.StatusOK, chosen, form)
	case form.Reason == "" || utf8.RuneCountInString(form.Reason) > action.MaxReason:
		form.Error = "Say why, in up to 500 characters."
		return f.confirmCancel(ctx, http.StatusBadRequest, chosen, form)
	}
	outcome, err := f.Commit(ctx, action.Change{
		Do: func(request context.Context, tx *postgres.Tx) (operator.Outcome, error) {
			outcome := operator.Outcome{Target: form.Back}
			ended, err := f.Webhooks.Deliveries.Cancel(request, tx, chosen)
			for _, uid := range ended {
				outcome.Entries = append(outcome.Entries, operator.NewEntry("delivery.cancel",
					uid.String(), nil, map[string]any{"state": delivery.StateCancelled}))
			}
			if err == nil && len(ended) == 0 {
				err = lending.NewError(lending.CodeInvalidState, "Nothing was cancelled: none of the chosen "+
					"deliveries is waiting any more. They were sent, or somebody else cancelled them.")
			}
			return outcome, err
		},
	})
	if err != nil {
		return err
	}
	f.LeaveNotice(ctx, "Cancelled: "+ui.Plural(len(outcome.Entries), "delivery", "deliveries")+".")
	return page.Redirect(ctx, outcome.Target)
}

// confirmCancel says how many deliveries would be cancelled, where they go, and what the
// consequences are.
func (f *Feature) confirmCancel(
	ctx echo.Context, status int, chosen []uuid.UUID, form deliveries.CancelForm,
) (err error) {
	form.Chosen, err = f.Webhooks.Deliveries.ByUIDs(ctx.Request().Context(), chosen)
	if err != nil {
		return err
	}
	endpoints := map[uuid.UUID]bool{}
	for _, sent := range form.Chosen {
		if !sent.State.IsFinal() {
			form.Waiting++
			endpoints[sent.SubscriptionUID] = true
		}
	}
	form.Endpoints = len(endpoints)
	if form.Waiting == 0 {
		return lending.NewError(lending.CodeInvalidState,
			"None of the chosen deliveries is waiting for an attempt: there is nothing to cancel.")
	}
	here := place.Under(form.Back, "Cancel deliveries")
	here.Here = "Cancel"
	return f.Show(ctx, status, here, deliveries.Cancel(form))
}

// doctor asks for a body and its signature.
func (f *Feature) doctor(ctx echo.Context) error {
	return f.showDoctor(ctx, http.StatusOK, deliveries.DoctorForm{
		Delivery: ctx.QueryParam("delivery"), Subscription: ctx.QueryParam("subscription"),
	})
}

func (f *Feature) showDoctor(ctx echo.Context, status int, form deliveries.DoctorForm) error {
	return f.Show(ctx, status, place.Under(paths.Deliveries, "Signature doctor"),
		deliveries.Doctor(form))
}

// examine says what is wrong with a signature. Requests are in the audit log, because
// answering needs the secret, and limited, because the answer shows whether a guess of the
// secret is right.
func (f *Feature) examine(ctx echo.Context) error {
	form := deliveries.DoctorForm{
		Delivery:     strings.TrimSpace(ctx.FormValue("delivery")),
		Subscription: strings.TrimSpace(ctx.FormValue("subscription")),
		// Browsers send the line ends of a text field as CRLF.
		Body:      strings.ReplaceAll(ctx.FormValue("body"), "\r\n", "\n"),
		Signature: strings.TrimSpace(ctx.FormValue("signature")), Errors: map[string]string{},
	}
	examination := diagnose.Examination{
		DeliveryUID:     page.ReadUID(form.Errors, "delivery", form.Delivery),
		SubscriptionUID: page.ReadUID(form.Errors, "subscription", form.Subscription),
		Body:            []byte(form.Body), Signature: form.Signature,
	}
	kind, subject := "subscription", examination.SubscriptionUID
	if form.Delivery != "" {
		kind, subject = "delivery", examination.DeliveryUID
	}
	verdict, err := f.Webhooks.Diagnoses.Examine(ctx.Request().Context(), examination)
	switch code := lending.ErrorCode(err); {
	case len(form.Errors) > 0:
		return f.showDoctor(ctx, http.StatusBadRequest, form)
	case err == nil:
	case code == lending.CodeValidation && form.Signature == "":
		form.Errors["signature"] = page.Sentence(page.ErrorText(err))
	case code == lending.CodeValidation:
		form.Errors["delivery"] = page.Sentence(page.ErrorText(err))
	case code == lending.CodeNotFound, code == lending.CodeInvalidState:
		form.Errors[kind] = page.Sentence(page.ErrorText(err))
	default:
		return err
	}
	if err != nil {
		return f.showDoctor(ctx, http.StatusBadRequest, form)
	}
	err = f.Record(ctx, action.Compared(operator.Entry{
		Action: kind + ".examine_signature", SubjectKind: kind, Subject: subject.String(),
		After: map[string]any{"finding": verdict.Finding},
	}))
	if err != nil {
		return err
	}
	form.Verdict = &ui.Notice{
		Tone: ui.Warn, Title: verdict.Explanation, Text: "Next: " + verdict.Next,
	}
	if verdict.Finding == diagnose.FoundValid {
		form.Verdict.Tone = ui.Good
	}
	return f.showDoctor(ctx, http.StatusOK, form)
}
