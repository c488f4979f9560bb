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

// SystemFacts are the configuration shown on the system page.
type SystemFacts struct {
	// KeyIDs name the keys for secrets at rest, the one in use first.
	KeyIDs []string
	// Bucket says where uploads are kept, without credentials.
	Bucket string
	// MailServer means that e-mails are sent.
	MailServer bool
}

// system shows the state of the whole of Drawbridge.
func (f *Feature) system(ctx echo.Context) error {
	report, err := f.Processes.Report(ctx.Request().Context())
	if err != nil {
		return err
	}
	quarantine, err := f.quarantine(ctx.Request().Context())
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
			Note: "new values are encrypted with the first",
		},
	}
	place := page.Place{Section: ui.SectionSystem, Title: "System"}
	return f.Show(ctx, http.StatusOK, place, operations.System(report, facts, quarantine))
}

// quarantine returns what a restored database holds back, for the banner.
func (f *Feature) quarantine(ctx context.Context) (operations.Quarantine, error) {
	state, err := f.Restored.State(ctx)
	if err != nil || !state.IsQuarantined() {
		return operations.Quarantine{}, err
	}
	quarantine := operations.Quarantine{Since: *state.QuarantinedAt, Reason: ui.Value(state.Reason)}
	quarantine.Deliveries, err = f.Webhooks.Deliveries.CountOpen(ctx, quarantine.Since)
	if err != nil {
		return operations.Quarantine{}, err
	}
	quarantine.Mails, err = f.Emails.CountQueued(ctx, f.DB, quarantine.Since)
	return quarantine, err
}
