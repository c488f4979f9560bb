// Package subscriptions is the console's pages about subscriptions: the list, the page of
// one, the form that creates or changes one, and the other changes to one.
package subscriptions

import (
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/paths"
	"drawbridge/views/subscriptions"
	"drawbridge/views/ui"
	"drawbridge/web/console/list"
	"drawbridge/web/console/page"
)

// Feature serves the pages.
type Feature struct {
	*list.Engine
	Webhooks *webhook.Services
	Partners *partner.Service
	// Snippets are programs that check a signature, shown beside a new secret.
	Snippets []subscriptions.Snippet

	oldest postgres.ThrottledCache[failing, time.Time]
}

// failing is a subscription and the time since which it has been failing.
type failing struct {
	uid   uuid.UUID
	since time.Time
}

// Routes lists the pages and changes.
func (f *Feature) Routes() []page.Route {
	const support, change = operator.RoleSupport, operator.RoleOperator
	form := editor{f}
	routes := append(list.Routes(f.Engine, f.list()), f.Actions(
		f.transition(pause), f.transition(resume), f.transition(remove), f.test(), f.rotate(),
		f.restore(),
	)...)
	return append(routes,
		page.Get(paths.SubscriptionNew, "console.subscription.new", change, form.newForm),
		page.Post(paths.SubscriptionNew, "console.subscription.create", change, form.create),
		page.Post(paths.SubscriptionCheck, "console.subscription.check", change, form.checkAddress),
		page.Get(paths.SubscriptionEdit, "console.subscription.edit", change, form.editForm),
		page.Post(paths.SubscriptionEdit, "console.subscription.change", change, form.edit),
		page.Get(paths.Subscription, "console.subscription", support, f.show),
		page.Get(paths.SubscriptionLive, "console.subscription.live", support, f.stream),
		page.Get(paths.SubscriptionResult, "console.subscription.result", support, f.showTest),
		page.Get(paths.SubscriptionOutcome, "console.subscription.result.live", support,
			f.streamTest),
		page.Post(paths.SubscriptionCompare, "console.subscription.compare", support,
			f.compareSecret))
}

var place = page.Place{Section: ui.SectionSubscriptions, Title: "Subscriptions"}

// placeOf returns the place of a subscription's page.
func placeOf(s subscription.Subscription) page.Place {
	return place.Under(paths.Subscriptions, s.Label())
}

// under returns the place of a form about a subscription.
func under(s subscription.Subscription, title string) page.Place {
	return placeOf(s).Under(paths.To(paths.Subscription, s.UID.String()), title)
}

// subscription returns the path's subscription, unless deleted, and its partner's name.
func (f *Feature) subscription(ctx echo.Context) (subscription.Subscription, string, error) {
	current, err := page.Named(ctx, f.Webhooks.Subscriptions.Get)
	if err != nil {
		return current, "", err
	}
	if current.State == subscription.StateDeleted {
		return current, "", lending.NewError(lending.CodeInvalidState,
			"The subscription was deleted; its page still shows what it sent.")
	}
	owner, err := f.Partners.Partner(ctx.Request().Context(), current.PartnerUID)
	return current, owner.Name, err
}

// versionField records which version a form showed.
func versionField(s subscription.Subscription) ui.HiddenField {
	return ui.HiddenField{Name: "version", Value: strconv.Itoa(s.Version)}
}

// did returns the outcome of a change of a subscription.
func did(target, action string, s subscription.Subscription, before, after any) operator.Outcome {
	return operator.Did(target,
		operator.NewEntry("subscription."+action, s.UID.String(), before, after))
}

// pasted removes the white space that copying adds; the zero value if nothing is left.
func pasted(text string) secret.String {
	if text = strings.TrimSpace(text); text == "" {
		return secret.String{}
	}
	return secret.New(text)
}
