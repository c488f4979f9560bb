package console

import (
	"context"
	"errors"
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook"
	"drawbridge/views/paths"
	"drawbridge/views/subscriptions"
	"drawbridge/views/ui"
)

// newSubscription shows the form for a new subscription.
func (c *Console) newSubscription(ctx echo.Context) error {
	form, err := c.newForm(ctx.Request().Context(), ctx.QueryParams())
	if err != nil {
		return err
	}
	return c.showForm(ctx, http.StatusOK, form)
}

// editSubscription shows the form for a subscription as it is.
func (c *Console) editSubscription(ctx echo.Context) error {
	current, err := c.liveSubscription(ctx)
	if err != nil {
		return err
	}
	form, err := c.formOf(ctx.Request().Context(), current)
	if err != nil {
		return err
	}
	return c.showForm(ctx, http.StatusOK, form)
}

// liveSubscription is the subscription in the path, unless it was deleted.
func (c *Console) liveSubscription(ctx echo.Context) (webhook.Subscription, error) {
	uid, err := pathUID(ctx)
	if err != nil {
		return webhook.Subscription{}, err
	}
	current, err := c.Webhooks.Subscription(ctx.Request().Context(), uid)
	if err == nil && current.State == webhook.StateDeleted {
		err = lending.NewError(lending.CodeInvalidState,
			"The subscription was deleted; its page still shows what it sent.")
	}
	return current, err
}

// createSubscription does what the pressed button of the new form says.
func (c *Console) createSubscription(ctx echo.Context) error {
	form, err := c.readForm(ctx, nil)
	if err != nil {
		return err
	}
	return c.actOnForm(ctx, form, nil)
}

// changeSubscription does what the pressed button of the edit form says.
func (c *Console) changeSubscription(ctx echo.Context) error {
	current, err := c.liveSubscription(ctx)
	if err != nil {
		return err
	}
	form, err := c.readForm(ctx, &current)
	if err != nil {
		return err
	}
	return c.actOnForm(ctx, form, &current)
}

// actOnForm leads to what the pressed button asks for. Without a button, as
// after Enter in a field, the form is saved.
func (c *Console) actOnForm(
	ctx echo.Context, form subscriptions.SubscriptionForm, current *webhook.Subscription,
) error {
	act := ctx.FormValue("act")
	switch {
	case editHeaders(&form, act), act == "merchants":
		return c.showForm(ctx, http.StatusOK, form)
	case act == "check":
		check := c.checkURL(ctx.Request().Context(), form.URL)
		form.Check, form.Focus = &check, "url"
		return c.showForm(ctx, http.StatusOK, form)
	case act == "try":
		return c.tryForm(ctx, form, current)
	}
	return c.saveForm(ctx, form, current)
}

// showForm answers with the form: alone when script asks, else as a page.
func (c *Console) showForm(
	ctx echo.Context, status int, form subscriptions.SubscriptionForm,
) error {
	if isFragment(ctx.Request()) {
		return render(ctx, status, subscriptions.SubscriptionFormRegion(form))
	}
	crumbs := []ui.Crumb{{Label: "Subscriptions", Href: paths.Subscriptions}}
	title := "New subscription"
	if !form.IsNew() {
		title = "Edit " + ui.HostOf(form.URL)
		crumbs = append(crumbs, ui.Crumb{
			Label: ui.HostOf(form.URL), Href: paths.To(paths.Subscription, form.UID),
		})
	}
	crumbs = append(crumbs, ui.Crumb{Label: "Edit"})
	if form.IsNew() {
		crumbs[len(crumbs)-1].Label = "New"
	}
	var err error
	form.Frame, err = c.frame(ctx, ui.SectionSubscriptions, title, crumbs...)
	if err != nil {
		return err
	}
	return render(ctx, status, subscriptions.SubscriptionFormPage(form))
}

// saveForm saves the form whole, or nothing of it.
func (c *Console) saveForm(
	ctx echo.Context, form subscriptions.SubscriptionForm, current *webhook.Subscription,
) error {
	request := ctx.Request().Context()
	var watch webhook.Watch
	if current != nil {
		watch = current.Watch
	}
	settings, rows := settingsOf(form, watch)
	faults := checkForm(form)
	if form.HeadersUnknown && !form.ReplaceHeaders {
		faults.Add("headers", "The stored headers do not open: say that those below replace them.")
	}
	warning, err := c.Webhooks.CheckDestination(request, settings.URL)
	faults.Merge(err)
	if err = faults.Err(); err == nil {
		if current == nil {
			return c.finishSave(ctx, form, rows, warning, func() (saved, error) {
				return c.subscribe(ctx, form, settings)
			})
		}
		return c.finishSave(ctx, form, rows, warning, func() (saved, error) {
			return c.amend(ctx, form, settings, *current)
		})
	}
	if !faultForm(&form, err, rows) {
		return err
	}
	return c.showForm(ctx, http.StatusBadRequest, form)
}

// saved is a subscription as it was saved, with its secret if that is new.
type saved struct {
	subscription webhook.Subscription
	secret       secret.String
	notice       string
}

// path is where a saved subscription is looked at: a new secret first.
func (s saved) path() string {
	tab := subscriptions.TabConfiguration
	if !s.secret.IsZero() {
		tab = subscriptions.TabSecret
	}
	return paths.SubscriptionTab(s.subscription.UID.String(), tab)
}

// finishSave saves and leads to the subscription, or back to the form.
func (c *Console) finishSave(
	ctx echo.Context, form subscriptions.SubscriptionForm, rows []subscriptions.HeaderField,
	warning string,
	save func() (saved, error),
) error {
	done, err := save()
	if _, stale := errors.AsType[*webhook.StaleError](err); stale {
		return c.showConflict(ctx, form, form.Version)
	}
	if err != nil {
		if faultForm(&form, err, rows) {
			return c.showForm(ctx, http.StatusBadRequest, form)
		}
		return err
	}
	if !done.secret.IsZero() {
		c.keepSecretOnce(ctx, done.subscription.UID.String(), done.secret)
	}
	if warning != "" {
		done.notice += " " + sentence(warning)
	}
	c.leaveNotice(ctx, done.notice)
	return leadTo(ctx, done.path())
}

// leadTo sends the browser to another page, whoever asked.
func leadTo(ctx echo.Context, target string) error {
	if isFragment(ctx.Request()) {
		ctx.Response().Header().Set("HX-Redirect", target)
		return ctx.NoContent(http.StatusOK)
	}
	return ctx.Redirect(http.StatusSeeOther, target)
}

// subscribe creates a subscription and keeps it in the audit log, both or
// neither.
func (c *Console) subscribe(
	ctx echo.Context, form subscriptions.SubscriptionForm, settings webhook.Settings,
) (saved, error) {
	var done saved
	_, err := c.act(ctx, func(request context.Context, tx *postgres.Tx) (string, error) {
		done = saved{notice: "Created. Send a test event to see whether it works."}
		partnerUID, err := uuid.Parse(form.Partner)
		if err != nil {
			return "", lending.Invalid("partner", "Choose the partner whose events are sent.")
		}
		done.subscription, done.secret, err = c.Webhooks.Subscribe(
			request, tx, partnerUID, settings, currentUser(ctx).Email)
		if err != nil {
			return "", err
		}
		return done.path(), c.auditSubscription(ctx, tx, operator.Entry{
			Action: "subscription.create", Subject: done.subscription.UID.String(),
			Reason: form.Reason, After: subscriptionState(done.subscription),
		})
	})
	return done, err
}

// amend changes a subscription and keeps it in the audit log, both or neither.
func (c *Console) amend(
	ctx echo.Context, form subscriptions.SubscriptionForm, settings webhook.Settings,
	before webhook.Subscription,
) (saved, error) {
	patch := webhook.Patch{
		URL: &settings.URL, Auth: &settings.Auth, Events: settings.Events,
		Merchants: settings.Merchants, Headers: &settings.Headers, Overlap: webhook.DefaultOverlap,
		Rate: &settings.Rate, Watch: &settings.Watch, Base: form.Version, Reason: form.Reason,
	}
	if form.SecretMode != secretKeep && settings.Auth != webhook.AuthNone {
		patch.Secret = &settings.Secret
	}
	done := saved{notice: "Saved as a new version. Deliveries use it from now on."}
	_, err := c.act(ctx, func(request context.Context, tx *postgres.Tx) (_ string, err error) {
		done.subscription, done.secret, err = c.Webhooks.Amend(
			request, tx, before.UID, patch, currentUser(ctx).Email)
		if err != nil {
			return "", err
		}
		if done.subscription.Version == before.Version {
			done.notice = "Nothing was changed."
			return done.path(), nil
		}
		return done.path(), c.auditSubscription(ctx, tx, operator.Entry{
			Action: "subscription.update", Subject: before.UID.String(), Reason: form.Reason,
			Before: subscriptionState(before), After: subscriptionState(done.subscription),
		})
	})
	return done, err
}

// auditSubscription completes and writes an entry of the audit log.
func (c *Console) auditSubscription(
	ctx echo.Context, tx *postgres.Tx, entry operator.Entry,
) error {
	entry.Actor, entry.Address = currentUser(ctx).Email, ctx.RealIP()
	entry.SubjectKind = "subscription"
	return c.Operators.Audit(ctx.Request().Context(), tx, entry)
}

// subscriptionState is how the audit log writes a subscription: without secrets.
func subscriptionState(s webhook.Subscription) map[string]any {
	headers := []string{}
	for _, header := range s.Headers {
		headers = append(headers, header.String())
	}
	return map[string]any{
		"partner_uid": s.PartnerUID, "url": s.URL, "auth": s.Auth, "events": s.Events,
		"merchants": uidStrings(s.Merchants), "headers": headers, "rate": s.Rate, "state": s.State,
		"pause_when_failing": s.Watch.Pause, "alert_email": s.Watch.AlertEmail, "version": s.Version,
	}
}
