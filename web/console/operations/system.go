package operations

import (
	"context"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"drawbridge/views/operations"
	"drawbridge/views/ui"
	"drawbridge/web/console/page"
)

// SystemFacts are what the process knows of its configuration.
type SystemFacts struct {
	// KeyIDs name the keys for secrets at rest, the one in use first.
	KeyIDs []string
	// Bucket says where uploads are kept, without credentials.
	Bucket string
	// MailServer tells whether mails are sent.
	MailServer bool
}

// system shows how the whole of Drawbridge is.
func (f *Feature) system(ctx echo.Context) error {
	report, err := f.Processes.Report(ctx.Request().Context())
	if err != nil {
		return err
	}
	held, err := f.held(ctx.Request().Context())
	if err != nil {
		return err
	}
	mail := operations.Fact{Name: "Mail server", Value: "Configured", Tone: ui.Good}
	if !f.System.MailServer {
		mail.Value, mail.Tone, mail.Note = "None", ui.Warn, "e-mails are kept, not sent"
	}
	facts := []operations.Fact{
		{Name: "Version", Value: f.Version},
		{Name: "Public address", Value: f.PublicURL},
		{Name: "Uploads", Value: f.System.Bucket},
		mail,
		{
			Name: "Keys for secrets", Value: strings.Join(f.System.KeyIDs, ", "),
			Note: "new values are sealed with the first",
		},
	}
	place := page.Place{Section: ui.SectionSystem, Title: "System"}
	return f.Show(ctx, http.StatusOK, place, operations.System(report, facts, held))
}

// held is what a restored database holds, for the banner.
func (f *Feature) held(ctx context.Context) (operations.Held, error) {
	state, err := f.Restored.State(ctx)
	if err != nil || !state.IsHeld() {
		return operations.Held{}, err
	}
	held := operations.Held{Since: *state.HeldAt, Reason: page.Value(state.Reason)}
	if held.Deliveries, err = f.Webhooks.Deliveries.CountOpen(ctx, held.Since); err != nil {
		return operations.Held{}, err
	}
	held.Mails, err = f.Emails.CountQueued(ctx, f.DB, held.Since)
	return held, err
}
