package console

import (
	"context"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/views/emails"
	"drawbridge/views/mail"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// emailSamples shows how one kind of mail looks with the stored settings.
func (c *Console) emailSamples(ctx echo.Context) error {
	name := ctx.QueryParam("mail")
	if name == "" {
		name = mail.Samples()[0].Name
	}
	content, err := c.renderSample(ctx.Request().Context(), name)
	if err != nil {
		return err
	}
	page := emails.EmailSamples{
		Name: name, Subject: content.Subject, Text: content.Text,
		BodyURL: paths.To(paths.EmailSample, name), Settings: mailSettingsLink(ctx),
	}
	for _, sample := range mail.Samples() {
		page.Tabs = append(page.Tabs, ui.Tab{
			Label: sample.Title, Href: paths.Where(paths.EmailSamples, "mail", sample.Name),
			Current: sample.Name == name,
		})
	}
	page.Frame, err = c.frame(ctx, ui.SectionEmailSamples, "E-mail previews",
		ui.Crumb{Label: "E-mails", Href: paths.Emails}, ui.Crumb{Label: "Previews"})
	if err != nil {
		return err
	}
	allowFrames(ctx)
	return render(ctx, http.StatusOK, emails.EmailSamplesPage(page))
}

// emailSample answers the rendered body of a sample for a frame.
func (c *Console) emailSample(ctx echo.Context) error {
	content, err := c.renderSample(ctx.Request().Context(), ctx.Param("name"))
	if err != nil {
		return err
	}
	return framed(ctx, content.HTML)
}

// renderSample renders the sample of that name as the stored settings have it.
func (c *Console) renderSample(ctx context.Context, name string) (mail.Content, error) {
	samples := mail.Samples()
	at := slices.IndexFunc(samples, func(sample mail.Sample) bool { return sample.Name == name })
	if at < 0 {
		return mail.Content{}, lending.NewError(lending.CodeNotFound,
			"there is no sample %.60q; open the previews and choose one", name)
	}
	settings, err := email.LoadSettings(ctx, c.DB)
	if err != nil {
		return mail.Content{}, err
	}
	return mail.Render(ctx, mail.Lender{
		Name: settings.LenderName, PrimaryColor: settings.PrimaryColor,
		AccentColor: settings.AccentColor, ReplyTo: settings.ReplyTo,
	}, samples[at].Letter)
}
