package console

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/webhook"
	"drawbridge/views/subscriptions"
)

// showConflict answers a change that was made from a version which is not in
// force any more: what only the others changed is taken over, what was typed
// stays, and both are shown beside what the form began with.
func (c *Console) showConflict(
	ctx echo.Context, typed subscriptions.SubscriptionForm, base int,
) error {
	request := ctx.Request().Context()
	current, err := c.liveSubscription(ctx)
	if err != nil {
		return err
	}
	versions, err := c.Webhooks.Versions(request, current.UID)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(versions, func(v webhook.Version) bool { return v.Number == base })
	if at < 0 {
		at = len(versions) - 1 // a version that never was: compare with the first
	}
	theirs, err := c.formOf(request, current)
	if err != nil {
		return err
	}
	began, err := c.formOf(request, versionAsSubscription(current, versions[at]))
	if err != nil {
		return err
	}
	typed.Conflict = &subscriptions.Conflict{}
	for _, version := range slices.Backward(versions[:at]) {
		typed.Conflict.Versions = append(typed.Conflict.Versions, versionRow(version))
	}
	typed.Conflict.Changes = mergeForms(&typed, began, theirs)
	typed.Version, typed.StoredAuth, typed.Focus = current.Version, string(current.Auth), ""
	typed.HeadersUnknown = current.HeadersUnknown
	return c.showForm(ctx, http.StatusConflict, typed)
}

// versionAsSubscription is a subscription as a version of it was.
func versionAsSubscription(s webhook.Subscription, v webhook.Version) webhook.Subscription {
	s.URL, s.Auth, s.Events, s.Merchants = v.URL, v.Auth, v.Events, v.Merchants
	s.Headers, s.Rate, s.Version = v.Headers, v.Rate, v.Number
	s.HeadersUnknown = v.HeadersUnknown
	if v.Watch != nil {
		s.Watch = *v.Watch
	}
	return s
}

// part is one setting of a form: what it says, and how another's is taken over.
type part struct {
	name string
	text func(f subscriptions.SubscriptionForm) string
	take func(to *subscriptions.SubscriptionForm, from subscriptions.SubscriptionForm)
}

var formParts = []part{
	{
		"URL", func(f subscriptions.SubscriptionForm) string { return f.URL },
		func(to *subscriptions.SubscriptionForm, from subscriptions.SubscriptionForm) {
			to.URL = from.URL
		},
	},
	{
		"Merchants", merchantsText,
		func(to *subscriptions.SubscriptionForm, from subscriptions.SubscriptionForm) {
			to.AllMerchants, to.Merchants = from.AllMerchants, from.Merchants
		},
	},
	{
		"Events", eventsText,
		func(to *subscriptions.SubscriptionForm, from subscriptions.SubscriptionForm) {
			to.AllEvents, to.Events = from.AllEvents, from.Events
		},
	},
	{
		"Authentication", func(f subscriptions.SubscriptionForm) string {
			return subscriptions.AuthWord(f.Auth)
		},
		func(to *subscriptions.SubscriptionForm, from subscriptions.SubscriptionForm) {
			to.Auth, to.SecretMode = from.Auth, from.SecretMode
		},
	},
	{
		"Headers", headersText,
		func(to *subscriptions.SubscriptionForm, from subscriptions.SubscriptionForm) {
			to.Headers = from.Headers
		},
	},
	{
		"Rate", func(f subscriptions.SubscriptionForm) string { return cmp.Or(f.Rate, "no limit") },
		func(to *subscriptions.SubscriptionForm, from subscriptions.SubscriptionForm) {
			to.Rate = from.Rate
		},
	},
	{
		"When it fails", failingText,
		func(to *subscriptions.SubscriptionForm, from subscriptions.SubscriptionForm) {
			to.PauseWhenFailing = from.PauseWhenFailing
		},
	},
	{
		"Alert e-mail", func(f subscriptions.SubscriptionForm) string {
			return cmp.Or(f.AlertEmail, "none")
		},
		func(to *subscriptions.SubscriptionForm, from subscriptions.SubscriptionForm) {
			to.AlertEmail = from.AlertEmail
		},
	},
}

// mergeForms takes over into typed what only the others changed, and returns
// every setting that they changed.
func mergeForms(
	typed *subscriptions.SubscriptionForm, began, theirs subscriptions.SubscriptionForm,
) []subscriptions.ConflictChange {
	var changes []subscriptions.ConflictChange
	for _, each := range formParts {
		before, now, yours := each.text(began), each.text(theirs), each.text(*typed)
		if before == now {
			continue
		}
		change := subscriptions.ConflictChange{
			Setting: each.name, Base: before, Theirs: now,
			Yours: yours,
		}
		if yours == before {
			each.take(typed, theirs)
			change.Yours = ""
		}
		changes = append(changes, change)
	}
	return changes
}

func merchantsText(f subscriptions.SubscriptionForm) string {
	if f.AllMerchants {
		return "all"
	}
	var names []string
	for _, merchant := range f.Merchants {
		if merchant.Checked {
			names = append(names, merchant.Label)
		}
	}
	return strings.Join(names, ", ")
}

func failingText(f subscriptions.SubscriptionForm) string {
	if f.PauseWhenFailing {
		return "pause it"
	}
	return "go on trying"
}

func eventsText(f subscriptions.SubscriptionForm) string {
	return strings.Join(chosenEvents(f), ", ")
}

// headersText tells headers apart without showing what may be a credential.
func headersText(f subscriptions.SubscriptionForm) string {
	var lines []string
	for _, header := range f.Headers {
		if header.Name == "" && header.Value == "" {
			continue
		}
		text := header.Value
		if !header.Plain {
			text = "hidden value"
			if header.Value != "" {
				text = "another hidden value"
			}
		}
		lines = append(lines, strings.ToLower(header.Name)+": "+text)
	}
	return cmp.Or(strings.Join(lines, ", "), "none")
}

// rateText is a rate as the form writes it; empty for no limit.
func rateText(rate int) string {
	if rate == 0 {
		return ""
	}
	return strconv.Itoa(rate)
}
