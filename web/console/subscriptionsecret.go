package console

import (
	"context"
	"net/http"
	"strings"
	"time"

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

// Where a new secret waits for the one page that shows it: sealed, in the
// session of the person who made it.
const (
	onceTable  = "sessions"
	onceColumn = "new_secret"
	onceKey    = "once:"
)

// keepSecretOnce keeps a new secret for the next look at the subscription.
func (c *Console) keepSecretOnce(ctx echo.Context, uid string, value secret.String) {
	sealed := c.Webhooks.Keys.Seal([]byte(value.Reveal()), onceTable, onceColumn, uid)
	c.sessions.Put(ctx.Request().Context(), onceKey+uid, sealed)
}

// takeSecret returns a secret that was just made, once; empty without one.
func (c *Console) takeSecret(ctx echo.Context, uid string) string {
	sealed := c.sessions.PopString(ctx.Request().Context(), onceKey+uid)
	if sealed == "" {
		return ""
	}
	plain, err := c.Webhooks.Keys.Open(sealed, onceTable, onceColumn, uid)
	if err != nil {
		return "" // the key was taken away meanwhile; rotating makes another secret
	}
	return string(plain)
}

// secretTab is what can be told of a subscription's secret.
func secretTab(s webhook.Subscription, now time.Time) subscriptions.SecretTab {
	tab := subscriptions.SecretTab{Auth: string(s.Auth)}
	if until := value(s.PreviousUntil); until.After(now) {
		tab.PreviousUntil = until
	}
	return tab
}

// overlaps are how long a former signing secret may go on signing.
var overlaps = []struct {
	label  string
	length time.Duration
}{
	{"24 hours", webhook.DefaultOverlap},
	{"1 hour", time.Hour},
	{"7 days", 7 * 24 * time.Hour},
	{"30 days", 30 * 24 * time.Hour},
	{"None: the present secret stops at once", 0},
}

func overlapOptions() []ui.Option {
	var options []ui.Option
	for _, each := range overlaps {
		options = append(options, ui.Option{Value: each.length.String(), Label: each.label})
	}
	return options
}

// rotateForm shows the form that puts a new secret in force.
func (c *Console) rotateForm(ctx echo.Context) error {
	current, err := c.liveSubscription(ctx)
	if err != nil {
		return err
	}
	return c.showRotate(ctx, http.StatusOK, current, subscriptions.RotateForm{
		Overlap: webhook.DefaultOverlap.String(),
	})
}

func (c *Console) showRotate(
	ctx echo.Context, status int, s webhook.Subscription, form subscriptions.RotateForm,
) error {
	if s.Auth == webhook.AuthNone {
		return lending.NewError(lending.CodeInvalidState,
			"The subscription has no secret; choose an authentication in its settings first.")
	}
	form.UID, form.URL, form.Auth = s.UID.String(), s.URL, string(s.Auth)
	form.Overlaps = overlapOptions()
	var err error
	if form.Partner, err = c.partnerOf(ctx, s); err != nil {
		return err
	}
	form.Frame, err = c.subscriptionFrame(ctx, s, "Rotate the secret")
	if err != nil {
		return err
	}
	return render(ctx, status, subscriptions.RotatePage(form))
}

// subscriptionFrame surrounds the page of an action on a subscription.
func (c *Console) subscriptionFrame(
	ctx echo.Context, s webhook.Subscription, title string,
) (ui.Frame, error) {
	return c.frame(ctx, ui.SectionSubscriptions, title,
		ui.Crumb{Label: "Subscriptions", Href: paths.Subscriptions},
		ui.Crumb{Label: ui.HostOf(s.URL), Href: paths.To(paths.Subscription, s.UID.String())},
		ui.Crumb{Label: title})
}

// partnerOf is the name of the partner whose events the subscription sends.
func (c *Console) partnerOf(ctx echo.Context, s webhook.Subscription) (string, error) {
	owner, err := c.Partners.Partner(ctx.Request().Context(), s.PartnerUID)
	return owner.Name, err
}

// rotate puts a new secret in force and shows it once.
func (c *Console) rotate(ctx echo.Context) error {
	current, err := c.liveSubscription(ctx)
	if err != nil {
		return err
	}
	form := subscriptions.RotateForm{
		Mode: ctx.FormValue("secret_mode"), Secret: strings.TrimSpace(ctx.FormValue("secret")),
		Overlap: ctx.FormValue("overlap"), Reason: ctx.FormValue("reason"),
		Faults: map[string]string{},
	}
	patch := webhook.Patch{Secret: new(secret.String), Reason: form.Reason}
	if form.Mode == secretPaste {
		*patch.Secret = secret.New(form.Secret)
		if form.Secret == "" {
			form.Faults["secret"] = "Type the secret that was agreed, or let one be generated."
		}
	}
	patch.Overlap, err = time.ParseDuration(form.Overlap)
	if current.Auth == webhook.AuthHMAC && (err != nil || !knownOverlap(patch.Overlap)) {
		form.Faults["overlap"] = "Choose one of the lengths."
	}
	if len(form.Faults) > 0 {
		return c.showRotate(ctx, http.StatusBadRequest, current, form)
	}
	done, err := c.rotateSecret(ctx, current, patch, form.Reason)
	if faults := faultsOf(err); faults != nil {
		form.Faults = faults
		return c.showRotate(ctx, http.StatusBadRequest, current, form)
	}
	if err != nil {
		return err
	}
	c.keepSecretOnce(ctx, current.UID.String(), done.secret)
	c.leaveNotice(ctx, "Rotated. The next delivery uses the new secret.")
	return ctx.Redirect(http.StatusSeeOther,
		paths.SubscriptionTab(current.UID.String(), subscriptions.TabSecret))
}

func knownOverlap(length time.Duration) bool {
	for _, each := range overlaps {
		if each.length == length {
			return true
		}
	}
	return false
}

// faultsOf are the faults of a refusal by field, nil for another error or none.
func faultsOf(err error) map[string]string {
	var form subscriptions.SubscriptionForm
	if err == nil || !faultForm(&form, err, nil) {
		return nil
	}
	return form.Faults
}

// rotateSecret puts the secret in force and keeps it in the audit log, both or
// neither.
func (c *Console) rotateSecret(
	ctx echo.Context, before webhook.Subscription, patch webhook.Patch, reason string,
) (saved, error) {
	var done saved
	target := paths.SubscriptionTab(before.UID.String(), subscriptions.TabSecret)
	_, err := c.act(ctx, func(request context.Context, tx *postgres.Tx) (_ string, err error) {
		done.subscription, done.secret, err = c.Webhooks.Amend(
			request, tx, before.UID, patch, currentUser(ctx).Email)
		if err != nil {
			return "", err
		}
		after := map[string]any{"version": done.subscription.Version}
		if until := done.subscription.PreviousUntil; until != nil {
			after["previous_until"] = until
		}
		return target, c.auditSubscription(ctx, tx, operator.Entry{
			Action: "subscription.rotate_secret", Subject: before.UID.String(), Reason: reason,
			Before: map[string]any{"version": before.Version}, After: after,
		})
	})
	return done, err
}
