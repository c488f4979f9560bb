package subscriptions

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/webhook"
	"drawbridge/views/subscriptions"
)

// showConflict answers a change that was made from a version which is not in
// force any more: what only the others changed is taken over, what was typed
// stays, and both are shown beside what the form began with.
func (f *Feature) showConflict(ctx echo.Context, typed subscriptions.Form) error {
	request := ctx.Request().Context()
	current, _, err := f.subscription(ctx)
	if err != nil {
		return err
	}
	versions, err := f.Webhooks.Versions(request, current.UID)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(versions, func(v webhook.Version) bool { return v.Number == typed.Version })
	if at < 0 {
		at = len(versions) - 1 // a version that never was: compare with the first
	}
	theirs, err := f.formOf(request, current)
	if err != nil {
		return err
	}
	base, old := current, versions[at]
	base.URL, base.Auth, base.Events, base.Merchants = old.URL, old.Auth, old.Events, old.Merchants
	base.Headers, base.Rate, base.HeadersUnknown = old.Headers, old.Rate, old.HeadersUnknown
	if old.Watch != nil {
		base.Watch = *old.Watch
	}
	began, err := f.formOf(request, base)
	if err != nil {
		return err
	}
	meanwhile := slices.Clone(versions[:at])
	slices.Reverse(meanwhile)
	typed.Conflict = &subscriptions.Conflict{Versions: meanwhile}
	typed.Conflict.Changes = mergeForms(&typed, began, theirs)
	typed.Version, typed.StoredAuth, typed.Focus = current.Version, string(current.Auth), ""
	typed.HeadersUnknown = current.HeadersUnknown
	return f.showForm(ctx, http.StatusConflict, typed)
}

// parts are the settings of a form: what each says, and how another's is taken over.
var parts = []struct {
	name string
	text func(form subscriptions.Form) string
	take func(to *subscriptions.Form, from subscriptions.Form)
}{
	{
		"URL", func(form subscriptions.Form) string { return form.URL },
		func(to *subscriptions.Form, from subscriptions.Form) { to.URL = from.URL },
	},
	{
		"Merchants", func(form subscriptions.Form) string {
			if form.AllMerchants {
				return "all"
			}
			_, names := chosenMerchants(form)
			return strings.Join(names, ", ")
		},
		func(to *subscriptions.Form, from subscriptions.Form) {
			to.AllMerchants, to.Merchants = from.AllMerchants, from.Merchants
		},
	},
	{
		"Events",
		func(form subscriptions.Form) string { return strings.Join(chosenEvents(form), ", ") },
		func(to *subscriptions.Form, from subscriptions.Form) {
			to.AllEvents, to.Events = from.AllEvents, from.Events
		},
	},
	{
		"Authentication",
		func(form subscriptions.Form) string { return subscriptions.AuthWord(webhook.Auth(form.Auth)) },
		func(to *subscriptions.Form, from subscriptions.Form) {
			to.Auth, to.SecretMode = from.Auth, from.SecretMode
		},
	},
	{
		"Headers", headersText,
		func(to *subscriptions.Form, from subscriptions.Form) { to.Headers = from.Headers },
	},
	{
		"Rate", func(form subscriptions.Form) string { return cmp.Or(form.Rate, "no limit") },
		func(to *subscriptions.Form, from subscriptions.Form) { to.Rate = from.Rate },
	},
	{
		"When it fails", func(form subscriptions.Form) string {
			if form.PauseWhenFailing {
				return "pause it"
			}
			return "go on trying"
		},
		func(to *subscriptions.Form, from subscriptions.Form) {
			to.PauseWhenFailing = from.PauseWhenFailing
		},
	},
	{
		"Alert e-mail", func(form subscriptions.Form) string { return cmp.Or(form.AlertEmail, "none") },
		func(to *subscriptions.Form, from subscriptions.Form) { to.AlertEmail = from.AlertEmail },
	},
}

// mergeForms takes over into typed what only the others changed, and returns
// every setting that they changed.
func mergeForms(
	typed *subscriptions.Form, began, theirs subscriptions.Form,
) []subscriptions.ConflictChange {
	var changes []subscriptions.ConflictChange
	for _, each := range parts {
		before, now, yours := each.text(began), each.text(theirs), each.text(*typed)
		if before == now {
			continue
		}
		change := subscriptions.ConflictChange{
			Setting: each.name, Base: before, Theirs: now, Yours: yours,
		}
		if yours == before {
			each.take(typed, theirs)
			change.Yours = ""
		}
		changes = append(changes, change)
	}
	return changes
}

// headersText tells headers apart without showing what may be a credential.
func headersText(form subscriptions.Form) string {
	var lines []string
	for _, header := range form.Headers {
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
