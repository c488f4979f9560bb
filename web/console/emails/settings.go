package emails

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"
	"unicode"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/email"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/emails"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/action"
	"drawbridge/web/console/page"
)

// settings changes the appearance of e-mails and the recipients of alerts.
func (f *Feature) settings() action.Spec {
	return action.Spec{
		Path: paths.MailSettings, Shown: "console.mailSettings", Sent: "console.mailSettings.save",
		Role: operator.RoleAdmin,
		Confirm: func(ctx echo.Context) (action.Form, error) {
			stored, err := email.LoadSettings(ctx.Request().Context(), f.DB)
			if err != nil {
				return action.Form{}, err
			}
			user, seen := page.User(ctx).Email, ctx.FormValue(action.SeenField)
			typed := email.Settings{
				LenderName:   strings.TrimSpace(ctx.FormValue("lender_name")),
				PrimaryColor: strings.ToLower(strings.TrimSpace(ctx.FormValue("primary_color"))),
				AccentColor:  strings.ToLower(strings.TrimSpace(ctx.FormValue("accent_color"))),
				ReplyTo:      strings.TrimSpace(ctx.FormValue("reply_to")),
				// Addresses may be separated by spaces, commas or semicolons, on one or several lines.
				AlertTo: strings.FieldsFunc(ctx.FormValue("alert_to"), func(r rune) bool {
					return unicode.IsSpace(r) || r == ',' || r == ';'
				}),
			}
			page.AllowFrames(ctx)
			return action.Form{
				Place: place.Under(paths.Emails, "E-mail settings"), Fields: settingsForm(stored),
				Page: emails.Settings,
				Change: action.Change{
					Done:      "Saved. New e-mails use these settings from now on.",
					Unchanged: "Nothing was changed.",
					Do: func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
						before, err := email.LockSettings(ctx, tx)
						if err != nil {
							return operator.Outcome{}, err
						}
						if now := described(before); seen != "" && seen != now {
							return operator.Outcome{}, action.Stale(seen, now)
						}
						if err := email.SaveSettings(ctx, tx, typed, user); err != nil {
							return operator.Outcome{}, err
						}
						after, err := email.LoadSettings(ctx, tx)
						if err != nil || reflect.DeepEqual(before, after) {
							return operator.Outcome{Target: paths.MailSettings}, err
						}
						return operator.Did(paths.MailSettings,
							operator.NewEntry("mail_settings.update", "mail", before, after)), nil
					},
				},
			}, nil
		},
	}
}

// described says what a form showed of the settings.
func described(s email.Settings) string {
	return fmt.Sprintf("the lender's name “%s”; the header colour %s; the accent colour %s; "+
		"replies to %s; alerts to %s", s.LenderName, s.PrimaryColor, s.AccentColor,
		cmp.Or(s.ReplyTo, "nobody"),
		cmp.Or(strings.Join(s.AlertTo, ", "), "every operator and admin"))
}

func settingsForm(stored email.Settings) ui.Confirmation {
	return ui.Confirmation{
		Title: "E-mail settings", Action: paths.MailSettings, Cancel: paths.MailSettings,
		Submit: "Save settings", NoReason: true,
		Hidden: []ui.HiddenField{action.Seen(described(stored))},
		Controls: []ui.Control{
			{
				Name: "lender_name", Label: "Lender's name", Thing: "the lender's name",
				Hint:  "Stands at the top of each e-mail and at its end.",
				Value: stored.LenderName, MaxLength: 100, Required: true, Autocomplete: "organization",
			},
			{
				Name: "primary_color", Label: "Header colour", Thing: "the colour of the head",
				Hint: "Now " + stored.PrimaryColor +
					". The text on it turns black or white, whichever can be read.",
				Value: stored.PrimaryColor, Type: "color",
			},
			{
				Name: "accent_color", Label: "Accent colour", Thing: "the colour of what matters",
				Hint: "Now " + stored.AccentColor +
					". Buttons, links and the line beside what is asked for.",
				Value: stored.AccentColor, Type: "color",
			},
			{
				Name: "reply_to", Label: "Replies go to", Thing: "the address for answers",
				Hint:  "An address that somebody reads. Without one, e-mails ask not to be answered.",
				Value: stored.ReplyTo, Type: "email", MaxLength: 254, Autocomplete: "off",
			},
			{
				Kind: ui.ControlArea, Name: "alert_to", Label: "Alerts go to",
				Thing: "the list of addresses for alerts",
				Hint:  "One address a line, at most 20. Without any, every operator and admin receives them.",
				Value: strings.Join(stored.AlertTo, "\n"), Rows: 4, MaxLength: 6000,
			},
		},
	}
}
