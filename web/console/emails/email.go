package emails

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/views/emails"
	"drawbridge/views/mail"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/page"
)

// named loads the e-mail in the path. Error: NOT_FOUND.
func (f *Feature) named(ctx echo.Context) (email.Detail, error) {
	return page.Named(ctx, func(ctx context.Context, uid uuid.UUID) (email.Detail, error) {
		return email.Get(ctx, f.DB, uid)
	})
}

// detail shows one e-mail.
func (f *Feature) detail(ctx echo.Context) error {
	found, err := f.named(ctx)
	if err != nil {
		return err
	}
	var resend *ui.Confirmation
	if found.CheckResend() == nil {
		resend = new(resendForm(ctx.Request().Context(), found))
	}
	page.AllowFrames(ctx)
	return f.Show(ctx, http.StatusOK, place.Under(paths.Emails, emails.Title(found.Email)),
		emails.Detail(found, resend))
}

// body answers with the rendered body of an e-mail for the frame of its page.
func (f *Feature) body(ctx echo.Context) error {
	found, err := f.written(ctx)
	if err != nil {
		return err
	}
	return framed(ctx, found.HTML)
}

// source answers with the raw message as it is sent, to be kept as proof or opened in a
// mail program.
func (f *Feature) source(ctx echo.Context) error {
	found, err := f.written(ctx)
	if err != nil {
		return err
	}
	ctx.Response().Header().Set(echo.HeaderContentDisposition,
		fmt.Sprintf(`attachment; filename="email-%s.eml"`, found.EmailUID))
	return ctx.Blob(http.StatusOK, "message/rfc822", []byte(found.Source))
}

// written loads the e-mail in the path. Error: NOT_FOUND if it has no text.
func (f *Feature) written(ctx echo.Context) (email.Detail, error) {
	found, err := f.named(ctx)
	if err == nil && (found.HTML == "" || found.Source == "") {
		err = lending.NewError(lending.CodeNotFound,
			"the e-mail %s has no text: it is not written yet, or its text was removed", found.EmailUID)
	}
	return found, err
}

const (
	// framePolicy lets an e-mail in a frame use its own styles. It cannot run scripts, send
	// forms, load anything or navigate.
	framePolicy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; " +
		"form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
	// stillLinks is appended to a framed e-mail: its links cannot be opened here, and a click
	// would replace the e-mail by the browser's refusal.
	stillLinks = "<style>a{pointer-events:none}</style>"
)

// framed answers with foreign HTML that can be viewed and do nothing, in a frame of the
// console or opened by itself.
func framed(ctx echo.Context, html string) error {
	header := ctx.Response().Header()
	header.Set("Content-Security-Policy", framePolicy)
	header.Set("X-Frame-Options", "SAMEORIGIN")
	header.Set("Referrer-Policy", "no-referrer")
	// Browsers do not render a sandboxed document with this header.
	header.Del("Cross-Origin-Opener-Policy")
	return ctx.HTML(http.StatusOK, html+stillLinks)
}

// samples shows one kind of e-mail with the stored settings.
func (f *Feature) samples(ctx echo.Context) error {
	name := ctx.QueryParam("mail")
	if name == "" {
		name = mail.Samples()[0].Name
	}
	content, err := f.renderSample(ctx.Request().Context(), name)
	if err != nil {
		return err
	}
	at := place.Under(paths.Emails, "E-mail previews")
	at.Section, at.Here = ui.SectionEmailSamples, "Previews"
	page.AllowFrames(ctx)
	return f.Show(ctx, http.StatusOK, at, emails.Samples(name, content))
}

// sample answers with the rendered body of a sample for a frame.
func (f *Feature) sample(ctx echo.Context) error {
	content, err := f.renderSample(ctx.Request().Context(), ctx.Param("name"))
	if err != nil {
		return err
	}
	return framed(ctx, content.HTML)
}

// renderSample renders the named sample with the stored settings.
func (f *Feature) renderSample(ctx context.Context, name string) (email.Content, error) {
	samples := mail.Samples()
	at := slices.IndexFunc(samples, func(sample mail.Sample) bool { return sample.Name == name })
	if at < 0 {
		return email.Content{}, lending.NewError(lending.CodeNotFound,
			"there is no sample %.60q; open the previews and choose one", name)
	}
	settings, err := email.LoadSettings(ctx, f.DB)
	if err != nil {
		return email.Content{}, err
	}
	return mail.Render(ctx,
		mail.Lender{Settings: settings, Currency: f.Currency}, samples[at].Message)
}
