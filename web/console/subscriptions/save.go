package subscriptions

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/paths"
	"drawbridge/views/subscriptions"
	"drawbridge/web/console/action"
	"drawbridge/web/console/page"
)

// create handles the buttons of the form for a new subscription.
func (f editor) create(ctx echo.Context) error { return f.answerForm(ctx, nil) }

// edit handles the buttons of the form for an existing subscription.
func (f editor) edit(ctx echo.Context) error {
	current, _, err := f.subscription(ctx)
	if err != nil {
		return err
	}
	return f.answerForm(ctx, &current)
}

// answerForm does what the pressed button asks for. Without a button, as after Enter in a
// field, it saves the form.
func (f editor) answerForm(ctx echo.Context, current *subscription.Subscription) error {
	form, err := f.readForm(ctx, current)
	if err != nil {
		return err
	}
	pressed := ctx.FormValue("act")
	switch {
	case editHeaders(&form, pressed), pressed == "merchants":
		return f.showForm(ctx, http.StatusOK, form)
	case pressed == "check":
		form.Check = subscriptions.Checked(f.Webhooks.Subscriptions.CheckURL(ctx.Request().Context(),
			form.URL))
		form.Focus = "url"
		return f.showForm(ctx, http.StatusOK, form)
	case pressed == "try":
		return f.try(ctx, form, current)
	}
	return f.save(ctx, form, current)
}

// checkAddress answers a script with the result of checking the form's URL.
func (f editor) checkAddress(ctx echo.Context) error {
	found := f.Webhooks.Subscriptions.CheckURL(ctx.Request().Context(),
		strings.TrimSpace(ctx.FormValue("url")))
	return page.Render(ctx, http.StatusOK, subscriptions.CheckList(subscriptions.Checked(found)))
}

// settingsOf returns the settings of a form, and for each header its row. watch holds the
// health rules, of which the form shows a part.
func settingsOf(
	form subscriptions.Form, watch subscription.Watch,
) (subscription.Settings, []subscriptions.HeaderField) {
	settings := subscription.Settings{
		URL: form.URL, Auth: sender.Auth(form.Auth), Events: chosenEvents(form),
		Headers: []sender.Header{}, Watch: watch,
	}
	settings.Merchants, _ = chosenMerchants(form)
	settings.Watch.Pause, settings.Watch.AlertEmail = form.PauseWhenFailing, form.AlertEmail
	settings.Rate, _ = strconv.Atoi(form.Rate) // checkForm reports what is no number
	settings.Name, settings.Standard = form.Name, form.Standard
	settings.Retry, _ = subscription.ParseDelays(form.Retry) // likewise for delays
	if form.SecretMode == secretPaste {
		settings.Secret = pasted(form.Secret)
	}
	var rows []subscriptions.HeaderField
	for _, field := range form.Headers {
		if field.Name == "" && field.Value == "" {
			continue // an empty row
		}
		settings.Headers = append(settings.Headers, sender.Header{
			Name: field.Name, Value: field.Value, Plain: field.Plain,
			Kept: field.Kept && field.Value == "",
		})
		rows = append(rows, field)
	}
	return settings, rows
}

// checkForm finds the errors that only a form can have.
func checkForm(form subscriptions.Form) lending.FieldErrors {
	merchants, _ := chosenMerchants(form)
	_, rateErr := strconv.Atoi(form.Rate)
	_, retryErr := subscription.ParseDelays(form.Retry)
	var problems lending.FieldErrors
	for _, rule := range []struct {
		field  string
		broken bool
		text   string
	}{
		{
			"partner", form.IsNew() && form.PartnerName == "",
			"Choose the partner whose events are sent.",
		},
		{
			"merchant", !form.AllMerchants && len(merchants) == 0,
			"Choose at least one merchant, or cover all of them.",
		},
		{
			"event", len(chosenEvents(form)) == 0,
			"Choose at least one event, or send all of them.",
		},
		{
			"secret", form.Auth != "none" && form.SecretMode == secretPaste && form.Secret == "",
			"Type the secret that was agreed, or let one be generated.",
		},
		{
			"rate", form.Rate != "" && rateErr != nil,
			"The rate is a whole number of requests a second, or empty for no limit.",
		},
		{
			"retry", form.Retry != "" && retryErr != nil,
			"Write two delays such as 5m,2h, or leave the field empty.",
		},
		{
			"alert_email", form.AlertEmail != "" && email.CheckAddress(form.AlertEmail) != nil,
			"Write the alert e-mail as ana@example.com, or leave it empty.",
		},
		{
			"headers", form.HeadersUnknown && !form.ReplaceHeaders,
			"The stored headers do not open: say that those below replace them.",
		},
	} {
		if rule.broken {
			problems.Add(rule.field, "%s", rule.text)
		}
	}
	return problems
}

// save saves the whole form or nothing, and redirects to the subscription, or to its secret
// tab if the secret is new.
func (f editor) save(
	ctx echo.Context, form subscriptions.Form, current *subscription.Subscription,
) error {
	var watch subscription.Watch
	if current != nil {
		watch = current.Watch
	}
	settings, rows := settingsOf(form, watch)
	problems := checkForm(form)
	warning, err := f.Webhooks.Subscriptions.CheckDestination(ctx.Request().Context(), settings.URL)
	problems.Merge(err)
	if len(problems) > 0 {
		if current == nil {
			err = f.Webhooks.Subscriptions.CheckNew(settings)
		} else {
			err = f.Webhooks.Subscriptions.CheckAmend(*current, patchOf(form, settings))
		}
		problems.MergeOthers(err)
		return f.showWrong(ctx, form, problems.Err(), rows)
	}
	var made saved
	change := f.saving(ctx, form, settings, current, &made)
	if warning != "" {
		change.Done += " " + page.Sentence(warning)
		change.Unchanged += " " + page.Sentence(warning)
	}
	outcome, err := f.Commit(ctx, change)
	if _, stale := errors.AsType[*subscription.StaleError](err); stale {
		return f.showConflict(ctx, form)
	}
	if err != nil {
		return f.showWrong(ctx, form, err, rows)
	}
	if !made.secret.IsZero() {
		f.KeepSecret(ctx, f.Webhooks.Subscriptions.Keys, made.UID.String(), made.secret)
	}
	return page.Redirect(ctx, outcome.Target)
}

// saved is a saved subscription, with its secret if that is new.
type saved struct {
	subscription.Subscription
	secret secret.String
}

// path is the page after saving: the secret tab if the secret is new.
func (s saved) path() string {
	tab := subscriptions.TabConfiguration
	if !s.secret.IsZero() {
		tab = subscriptions.TabSecret
	}
	return paths.SubscriptionTab(s.UID.String(), tab)
}

// saving creates the subscription of the form, or changes the existing one to it.
func (f editor) saving(
	ctx echo.Context, form subscriptions.Form, settings subscription.Settings,
	before *subscription.Subscription, made *saved,
) action.Change {
	by := page.User(ctx).Email
	if before == nil {
		return action.Change{
			Done: "Created. Send a test event to see whether it works.",
			Do: func(request context.Context, tx *postgres.Tx) (_ operator.Outcome, err error) {
				partnerUID, err := uuid.Parse(form.Partner)
				if err != nil {
					return operator.Outcome{},
						lending.Invalid("partner", "Choose the partner whose events are sent.")
				}
				made.Subscription, made.secret, err = f.Webhooks.Subscriptions.Subscribe(
					request, tx, partnerUID, settings, by)
				return did(made.path(), "create", made.Subscription, nil, made.Audited()), err
			},
		}
	}
	return action.Change{
		Done:      "Saved as a new version. Deliveries use it from now on.",
		Unchanged: "Nothing was changed.",
		Do: func(request context.Context, tx *postgres.Tx) (_ operator.Outcome, err error) {
			made.Subscription, made.secret, err = f.Webhooks.Subscriptions.Amend(
				request, tx, before.UID, patchOf(form, settings), by)
			if err != nil || made.Version == before.Version {
				return operator.Outcome{Target: made.path()}, err
			}
			return did(made.path(), "update", *before, before.Audited(), made.Audited()), nil
		},
	}
}

// patchOf returns the patch of a subscription that a form asks for.
func patchOf(form subscriptions.Form, settings subscription.Settings) subscription.Patch {
	patch := subscription.Patch{
		URL: &settings.URL, Auth: &settings.Auth, Events: settings.Events,
		Merchants: settings.Merchants, Headers: &settings.Headers, Overlap: subscription.DefaultOverlap,
		Rate: &settings.Rate, Watch: &settings.Watch, Base: form.Version, Reason: form.Reason,
		Name: &settings.Name, Retry: &settings.Retry, Standard: &settings.Standard,
	}
	if form.SecretMode != secretKeep && settings.Auth != sender.AuthNone {
		patch.Secret = &settings.Secret
	}
	return patch
}

// formLabels maps the names of the form's fields to their labels, as written within a sentence.
var formLabels = map[string]string{
	"url": "The URL", "partner": "The partner", "merchant": "The merchant", "event": "The event",
	"auth": "The authentication", "secret": "The secret", "reason": "The reason",
	"rate": "The rate", "alert_email": "The alert e-mail", "name": "The name",
	"retry": "The delays", "standard": "Standard Webhooks",
}

// formOrder is the order of the form's fields, from top to bottom.
var formOrder = []string{
	"name", "url", "partner", "merchant", "event", "auth", "secret", "standard", "headers", "rate",
	"retry", "alert_email",
	"reason", "test_event",
}

// showWrong shows the form with the messages of a refusal beside the fields. rows are the
// rows of the headers that were checked. An error that refuses no field is returned.
func (f editor) showWrong(
	ctx echo.Context, form subscriptions.Form, err error, rows []subscriptions.HeaderField,
) error {
	refusal, ok := errors.AsType[*lending.Error](page.WithLabels(err, formLabels))
	if !ok || len(refusal.Details) == 0 {
		return err
	}
	form.Errors = map[string]string{}
	for _, detail := range refusal.Details {
		field, index, part := detail.Field, 0, ""
		_, err := fmt.Sscanf(field, "headers[%d].%s", &index, &part)
		switch {
		case err == nil && index < len(rows):
			field = fmt.Sprintf("header-%d-%s", rows[index].Key, part)
		case !slices.Contains(formOrder, field):
			field = "url"
		}
		if form.Errors[field] == "" {
			form.ErrorOrder = append(form.ErrorOrder, field)
		}
		form.Errors[field] = strings.TrimSpace(
			form.Errors[field] + " " + page.Sentence(detail.Message))
	}
	place := func(field string) int {
		if strings.HasPrefix(field, "header-") {
			field = "headers"
		}
		return slices.Index(formOrder, field)
	}
	slices.SortStableFunc(form.ErrorOrder, func(a, b string) int { return place(a) - place(b) })
	status := http.StatusBadRequest
	if errors.Is(err, operator.ErrRepeated) {
		status = http.StatusConflict
	}
	return f.showForm(ctx, status, form)
}
