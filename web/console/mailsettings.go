package console

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"unicode"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/emails"
	"drawbridge/views/mail"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// settingLabels are the fields of the form by their names, as a sentence
// mentions them.
var settingLabels = map[string]string{
	"lender_name":   "the lender's name",
	"primary_color": "the colour of the head",
	"accent_color":  "the colour of what matters",
	"reply_to":      "the address for answers",
	"alert_to":      "the list of addresses for alerts",
}

// mailSettings shows how mail looks and who hears of trouble.
func (c *Console) mailSettings(ctx echo.Context) error {
	settings, err := email.LoadSettings(ctx.Request().Context(), c.DB)
	if err != nil {
		return err
	}
	return c.showMailSettings(ctx, http.StatusOK, mailSettingsForm(settings))
}

// saveMailSettings stores the form whole, or nothing of it.
func (c *Console) saveMailSettings(ctx echo.Context) error {
	settings := readMailSettings(ctx)
	changed, err := c.changeMailSettings(ctx, settings)
	if refusal, ok := errors.AsType[*lending.Error](err); ok && len(refusal.Details) > 0 {
		form := mailSettingsForm(settings)
		form.Faults = labelled(refusal.Details, settingLabels)
		return c.showMailSettings(ctx, http.StatusBadRequest, form)
	}
	if err != nil {
		return err
	}
	notice := "Saved. New e-mails use these settings from now on."
	if !changed {
		notice = "Nothing was changed."
	}
	c.leaveNotice(ctx, notice)
	return ctx.Redirect(http.StatusSeeOther, paths.MailSettings)
}

// changeMailSettings saves and keeps it in the audit log, both or neither; it
// tells whether there was anything to save.
func (c *Console) changeMailSettings(ctx echo.Context, settings email.Settings) (bool, error) {
	user, target := currentUser(ctx), paths.MailSettings
	changed := false
	_, err := c.act(ctx, func(request context.Context, tx *postgres.Tx) (string, error) {
		before, err := email.LoadSettings(request, tx)
		if err != nil {
			return "", err
		}
		if err := email.SaveSettings(request, tx, settings, user.Email); err != nil {
			return "", err
		}
		after, err := email.LoadSettings(request, tx)
		if err != nil {
			return "", err
		}
		if changed = !reflect.DeepEqual(before, after); !changed {
			return target, nil
		}
		return target, c.Operators.Audit(request, tx, operator.Entry{
			Actor: user.Email, Address: ctx.RealIP(), Action: "mail_settings.update",
			SubjectKind: "mail_settings", Subject: "mail",
			Before: settingsState(before), After: settingsState(after),
		})
	})
	return changed, err
}

// settingsState is how the audit log writes settings.
func settingsState(settings email.Settings) map[string]any {
	return map[string]any{
		"lender_name": settings.LenderName, "primary_color": settings.PrimaryColor,
		"accent_color": settings.AccentColor, "reply_to": settings.ReplyTo,
		"alert_to": []string(settings.AlertTo),
	}
}

func (c *Console) showMailSettings(
	ctx echo.Context, status int, form emails.MailSettingsForm,
) error {
	frame, err := c.frame(ctx, ui.SectionEmails, "E-mail settings",
		ui.Crumb{Label: "E-mails", Href: paths.Emails}, ui.Crumb{Label: "E-mail settings"})
	if err != nil {
		return err
	}
	frame.Notice = c.takeNotice(ctx)
	allowFrames(ctx)
	return render(ctx, status, emails.MailSettingsPage(emails.MailSettings{
		Frame: frame, Form: form, SampleURL: paths.To(paths.EmailSample, mail.Samples()[0].Name),
	}))
}

func mailSettingsForm(settings email.Settings) emails.MailSettingsForm {
	return emails.MailSettingsForm{
		LenderName: settings.LenderName, PrimaryColor: settings.PrimaryColor,
		AccentColor: settings.AccentColor, ReplyTo: settings.ReplyTo,
		AlertTo: strings.Join(settings.AlertTo, "\n"),
	}
}

// readMailSettings reads the form. Addresses may be parted by anything that
// people put between them.
func readMailSettings(ctx echo.Context) email.Settings {
	return email.Settings{
		LenderName:   strings.TrimSpace(ctx.FormValue("lender_name")),
		PrimaryColor: strings.ToLower(strings.TrimSpace(ctx.FormValue("primary_color"))),
		AccentColor:  strings.ToLower(strings.TrimSpace(ctx.FormValue("accent_color"))),
		ReplyTo:      strings.TrimSpace(ctx.FormValue("reply_to")),
		AlertTo: strings.FieldsFunc(ctx.FormValue("alert_to"), func(r rune) bool {
			return unicode.IsSpace(r) || r == ',' || r == ';'
		}),
	}
}
