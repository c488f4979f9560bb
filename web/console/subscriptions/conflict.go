package subscriptions

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/subscriptions"
)

// showConflict answers a change that was based on a version which is no longer in force.
// Settings that only the others changed are taken over, what was typed stays, and both are
// shown beside the values that the form started with.
func (f editor) showConflict(ctx echo.Context, typed subscriptions.Form) error {
	request := ctx.Request().Context()
	current, _, err := f.subscription(ctx)
	if err != nil {
		return err
	}
	versions, err := f.Webhooks.Subscriptions.Versions(request, current.UID)
	if err != nil {
		return err
	}
	at := begunAt(versions, typed.Version)
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
	if old.Options != nil {
		base.Options = *old.Options
	}
	began, err := f.formOf(request, base)
	if err != nil {
		return err
	}
	meanwhile := slices.Clone(versions[:at])
	slices.Reverse(meanwhile)
	typed.Conflict = &subscriptions.Conflict{Versions: meanwhile}
	_, chosen := chosenMerchants(typed)
	_, seen := chosenMerchants(began)
	typed.Conflict.Changes = mergeForms(&typed, began, theirs)
	if slices.Equal(chosen, seen) {
		typed.Unshown = theirs.Unshown // the texts show only its count
	}
	if err := f.relistMerchants(request, &typed, current.Merchants); err != nil {
		return err
	}
	typed.Version, typed.StoredAuth, typed.Focus = current.Version, string(current.Auth), ""
	typed.HeadersUnknown = current.HeadersUnknown
	return f.showForm(ctx, http.StatusConflict, typed)
}

// begunAt returns the index, in a subscription's versions (newest first), of the one that a
// form was filled from. For an unknown number it is the index of the oldest version.
func begunAt(versions []subscription.Version, number int) int {
	at := slices.IndexFunc(versions, func(v subscription.Version) bool { return v.Number == number })
	if at < 0 {
		return len(versions) - 1
	}
	return at
}

// relistMerchants lists the merchants that the form ticked together with those in force, so
// that each can be kept or removed and saving replaces none that the form does not show.
func (f editor) relistMerchants(
	ctx context.Context, form *subscriptions.Form, stored []uuid.UUID,
) error {
	var ticked []uuid.UUID
	for _, merchant := range form.Merchants {
		if merchant.Checked {
			ticked = append(ticked, uuid.MustParse(merchant.Value))
		}
	}
	// Merchants that the others removed must not be restored invisibly.
	form.Unshown = slices.DeleteFunc(form.Unshown,
		func(uid uuid.UUID) bool { return !slices.Contains(stored, uid) })
	form.Merchants = nil
	return f.addMerchants(ctx, form, ticked, stored)
}

// settingTexts describes a form's value of each setting, in the order of settingNames.
func settingTexts(form subscriptions.Form) []string {
	merchants, failing := "all", "go on trying"
	if _, names := chosenMerchants(form); !form.AllMerchants {
		merchants = strings.Join(names, ", ")
	}
	if form.PauseWhenFailing {
		failing = "pause it"
	}
	standard := "no"
	if form.Standard {
		standard = "yes"
	}
	// Describe headers without showing values that may be credentials.
	var headers []string
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
		headers = append(headers, strings.ToLower(header.Name)+": "+text)
	}
	return []string{
		form.URL, merchants, strings.Join(chosenEvents(form), ", "),
		subscriptions.AuthWord(sender.Auth(form.Auth)),
		cmp.Or(strings.Join(headers, ", "), "none"),
		cmp.Or(form.Rate, "no limit"), failing, cmp.Or(form.AlertEmail, "none"),
		cmp.Or(form.Name, "none"), cmp.Or(form.Retry, "those of all"), standard,
	}
}

var settingNames = []string{
	"URL", "Merchants", "Events", "Authentication", "Headers", "Rate", "When it fails",
	"Alert e-mail", "Name", "Delays before attempts 2 and 3", "Standard Webhooks",
}

// mergeForms takes over into typed the settings that only the others changed, and returns
// all settings that they changed.
func mergeForms(
	typed *subscriptions.Form, began, theirs subscriptions.Form,
) []subscriptions.ConflictChange {
	var changes []subscriptions.ConflictChange
	before, now, yours := settingTexts(began), settingTexts(theirs), settingTexts(*typed)
	for i, name := range settingNames {
		if before[i] == now[i] {
			continue
		}
		change := subscriptions.ConflictChange{
			Setting: name, Base: before[i], Theirs: now[i], Yours: yours[i],
		}
		if yours[i] == before[i] {
			change.Yours = ""
			switch name {
			case "URL":
				typed.URL = theirs.URL
			case "Merchants":
				typed.AllMerchants, typed.Merchants = theirs.AllMerchants, theirs.Merchants
			case "Events":
				typed.AllEvents, typed.Events = theirs.AllEvents, theirs.Events
			case "Authentication":
				typed.Auth, typed.SecretMode = theirs.Auth, theirs.SecretMode
			case "Headers":
				typed.Headers = theirs.Headers
			case "Rate":
				typed.Rate = theirs.Rate
			case "When it fails":
				typed.PauseWhenFailing = theirs.PauseWhenFailing
			case "Alert e-mail":
				typed.AlertEmail = theirs.AlertEmail
			case "Name":
				typed.Name = theirs.Name
			case "Delays before attempts 2 and 3":
				typed.Retry = theirs.Retry
			case "Standard Webhooks":
				typed.Standard = theirs.Standard
			}
		}
		changes = append(changes, change)
	}
	return changes
}
