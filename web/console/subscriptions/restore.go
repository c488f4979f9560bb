package subscriptions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/paths"
	"drawbridge/views/subscriptions"
	"drawbridge/views/ui"
	"drawbridge/web/console/action"
	"drawbridge/web/console/page"
)

// settingWords are the labels of settings in a list of differences.
var settingWords = map[subscription.Setting]string{
	subscription.SettingURL: "URL", subscription.SettingAuth: "Authentication",
	subscription.SettingSecret: "Secret", subscription.SettingEvents: "Events",
	subscription.SettingMerchants: "Merchants", subscription.SettingHeaders: "Header",
	subscription.SettingRate: "Rate", subscription.SettingHealth: "Health rules",
	subscription.SettingState: "State", subscription.SettingName: "Name",
	subscription.SettingRetry:    "Delays before attempts 2 and 3",
	subscription.SettingStandard: "Standard Webhooks",
}

// differences describes the changed settings, merchants by their names.
func (f *Feature) differences(
	ctx context.Context, changes []subscription.SettingChange,
) ([]subscriptions.Difference, error) {
	var rows []subscriptions.Difference
	for _, change := range changes {
		row := subscriptions.Difference{
			Setting: strings.TrimSpace(settingWords[change.Setting] + " " + change.Name),
			Before:  change.Before, After: change.After,
		}
		switch {
		case change.Setting == subscription.SettingSecret:
			row.Before, row.After = "one secret", "another one"
		case change.Setting == subscription.SettingMerchants:
			for _, text := range []*string{&row.Before, &row.After} {
				uid, err := uuid.Parse(*text)
				if err != nil {
					continue // "all", or none
				}
				merchant, err := f.Partners.Merchant(ctx, uid)
				if err != nil {
					return nil, err
				}
				*text = merchant.Name
			}
		case change.Setting == subscription.SettingRate:
			row.Before, row.After = cmp.Or(row.Before, "no limit"), cmp.Or(row.After, "no limit")
		case change.Masked && change.Before == change.After:
			row.Before, row.After = "one hidden value", "another one"
		case change.Masked:
			row.Before, row.After = ui.HiddenWord(row.Before), ui.HiddenWord(row.After)
		}
		row.Before, row.After = cmp.Or(row.Before, "none"), cmp.Or(row.After, "none")
		rows = append(rows, row)
	}
	return rows, nil
}

// restore restores a version.
func (f *Feature) restore() action.Spec {
	return action.Spec{
		Path: paths.SubscriptionRestore, Shown: "console.subscription.restore",
		Sent: "console.subscription.restored", Role: operator.RoleOperator,
		Confirm: func(ctx echo.Context) (action.Form, error) {
			current, owner, err := f.subscription(ctx)
			if err != nil {
				return action.Form{}, err
			}
			old, changes, err := f.restorable(ctx, current)
			if err != nil {
				return action.Form{}, err
			}
			uid := current.UID.String()
			fields := restoreFields(current, old)
			done := fmt.Sprintf("Version %d is in force again.", old.Number)
			var refused error
			if page.IsSent(ctx) { // query DNS before the transaction
				var warning string
				warning, refused = f.Webhooks.Subscriptions.CheckDestination(ctx.Request().Context(),
					old.URL)
				if warning != "" {
					done += " " + page.Sentence(warning)
				}
			}
			var restored subscription.Restoration
			target := paths.SubscriptionTab(uid, subscriptions.TabVersions)
			return action.Form{
				Place: under(current, fields.Title), Fields: fields,
				Page: func(fields ui.Confirmation) templ.Component {
					return subscriptions.Restore(fields, current, owner, changes)
				},
				Show: func(ctx echo.Context) error {
					if !restored.Secret.IsZero() {
						f.KeepSecret(ctx, f.Webhooks.Subscriptions.Keys, uid, restored.Secret)
					}
					return page.Redirect(ctx, target)
				},
				Change: action.Change{
					Done: done,
					Do: func(request context.Context, tx *postgres.Tx) (_ operator.Outcome, err error) {
						if refused != nil {
							return operator.Outcome{}, refused
						}
						restored, err = f.Webhooks.Subscriptions.Restore(
							request, tx, current.UID, restoration(ctx, old.Number), page.User(ctx).Email)
						if !restored.Secret.IsZero() {
							target = paths.SubscriptionTab(uid, subscriptions.TabSecret)
						}
						if err != nil || restored.Subscription.Version == current.Version {
							return operator.Outcome{Target: target},
								page.WithLabels(err, map[string]string{"secret": "The token"})
						}
						return did(target, "restore", current, current.Audited(),
							restored.Subscription.Audited()), nil
					},
				},
			}, nil
		},
	}
}

// restorable returns the version that the request names, and what restoring it would change.
func (f *Feature) restorable(
	ctx echo.Context, current subscription.Subscription,
) (subscription.Version, []subscriptions.Difference, error) {
	request := ctx.Request().Context()
	versions, err := f.Webhooks.Subscriptions.Versions(request, current.UID)
	if err != nil {
		return subscription.Version{}, nil, err
	}
	number, _ := strconv.Atoi(ctx.FormValue("version")) // 0 is no version
	at := slices.IndexFunc(versions, func(v subscription.Version) bool { return v.Number == number })
	if at < 0 {
		return subscription.Version{}, nil,
			lending.NewError(lending.CodeNotFound, "There is no such version.")
	}
	diff, err := f.Webhooks.Subscriptions.CompareVersions(request, current.UID, current.Version,
		number)
	if err != nil {
		return subscription.Version{}, nil, err
	}
	changes, err := f.differences(request, slices.DeleteFunc(diff.Changes,
		func(change subscription.SettingChange) bool { // what a restore leaves as it is
			return change.Setting == subscription.SettingSecret ||
				change.Setting == subscription.SettingState
		}))
	return versions[at], changes, err
}

// restoreFields asks for a restore. If the version has another scheme, host or port, the
// token and the values of secret headers must be entered again.
func restoreFields(current subscription.Subscription, old subscription.Version) ui.Confirmation {
	form := ui.Confirmation{
		Title: "Restore version " + strconv.Itoa(old.Number), Submit: "Restore as a new version",
		Effects: []string{
			fmt.Sprintf("Version %d becomes the configuration in force again, as version %d.",
				old.Number, current.Version+1),
			"The secret stays the present one: versions have none of their own.",
			"Whether the subscription is active or paused does not change.",
			"It is checked against today's rules first.",
		},
		Action: paths.To(paths.SubscriptionRestore, current.UID.String()),
		Cancel: paths.To(paths.Subscription, current.UID.String()),
		Hidden: []ui.HiddenField{
			{Name: "version", Value: strconv.Itoa(old.Number)},
			{Name: "base", Value: strconv.Itoa(current.Version)},
		},
	}
	headers := 0
	if !subscription.SameOrigin(old.URL, current.URL) {
		if old.Auth == sender.AuthBearer && current.Auth == sender.AuthBearer {
			form.Effects[1] = "Its scheme, host or port is another one: the stored token does not " +
				"move there, and is given again below."
			form.Controls = append(form.Controls, ui.Control{
				Name: "secret", Label: "Bearer token",
				Hint: "16 to 256 visible ASCII characters without spaces.",
			})
		}
		for i, header := range old.Headers {
			if header.Plain || header.Value == "" {
				continue
			}
			headers++
			form.Hidden = append(form.Hidden, ui.HiddenField{Name: "header_name", Value: header.Name})
			form.Controls = append(form.Controls, ui.Control{
				Name: fmt.Sprintf("headers[%d].value", i), Label: "Value of the header " + header.Name,
			})
		}
	}
	if headers > 0 {
		form.Effects = append(form.Effects, "The values of its secret headers do not move to another "+
			"scheme, host or port either.")
	}
	if headers > 0 || old.HeadersUnknown {
		form.Controls = append(form.Controls, ui.Control{
			Name: "no_headers", Label: "Leave all custom headers of the version out",
		})
	}
	return form
}

// restoration reads the form of a restore.
func restoration(ctx echo.Context, version int) subscription.Choice {
	choice := subscription.Choice{
		Version: version, Secret: pasted(ctx.FormValue("secret")), Reason: ctx.FormValue("reason"),
		NoHeaders: ctx.FormValue("no_headers") != "",
	}
	choice.Base, _ = strconv.Atoi(ctx.FormValue("base")) // 0 restores over any version
	form := ctx.Request().Form
	names := form["header_name"]
	for i, text := range form["header_value"] {
		if text != "" && i < len(names) {
			choice.Headers = append(choice.Headers, sender.Header{Name: names[i], Value: text})
		}
	}
	return choice
}
