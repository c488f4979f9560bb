package applications

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/application"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/views/applications"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/page"
)

// application shows one application with its loan and its timeline.
func (f *Feature) application(ctx echo.Context) error {
	summary, err := page.Named(ctx, f.Applications.Summary)
	if err != nil {
		return err
	}
	request, uid, shown := ctx.Request().Context(), summary.UID, applications.Page{Summary: summary}
	shown.Application, err = f.Applications.Get(request, application.Caller{}, uid)
	if err != nil {
		return err
	}
	if shown.LegalHold, err = f.legalHoldInForce(request, uid); err != nil {
		return err
	}
	if shown.Tasks, err = f.Applications.Tasks(request, uid); err != nil {
		return err
	}
	if shown.Application.LoanOpen {
		open, err := f.Loans.Get(request, application.Caller{}, uid)
		if err != nil {
			return err
		}
		certificates, err := f.Loans.Certificates(request, uid)
		if err != nil {
			return err
		}
		shown.Loan = &open
		showParts(&shown, ctx.Request().URL, certificates)
	}
	if shown.Actions, err = f.actions(request, shown); err != nil {
		return err
	}
	if shown.Timeline, err = f.timeline(request, uid, ctx.QueryParams()); err != nil {
		return err
	}
	leadToParts(shown)
	if shown.Undelivered, err = f.undelivered(request, uid); err != nil {
		return err
	}
	return f.Show(ctx, http.StatusOK, placeOf(summary), applications.Detail(shown))
}

// showParts sets the draws and certificates that the address selects. There may be any
// number of draws, since they can be cancelled and requested again.
func showParts(shown *applications.Page, at *url.URL, certificates []loan.StoredCertificate) {
	newest := slices.Clone(shown.Loan.History)
	slices.Reverse(newest)
	shown.Draws, shown.DrawsPager = page.Part(at, "draw", "loan-title", newest, drawKey)
	slices.Reverse(shown.Draws)
	shown.Certificates, shown.CertificatesPager = page.Part(at, "certificate", "certificates-title",
		certificates, certificateKey)
}

func drawKey(draw loan.Disbursement) string { return strconv.FormatInt(draw.ID, 10) }

func certificateKey(stored loan.StoredCertificate) string { return stored.UID.String() }

// leadToParts rewrites timeline links to draws and certificates that are not on the page
// into links to the page that shows them.
func leadToParts(shown applications.Page) {
	here := map[string]bool{}
	for _, draw := range shown.Draws {
		here["#draw-"+drawKey(draw)] = true
	}
	for _, certificate := range shown.Certificates {
		here["#certificate-"+certificateKey(certificate)] = true
	}
	for i, entry := range shown.Timeline.Entries {
		if anchor, within := strings.CutPrefix(entry.Href, "#"); within && !here[entry.Href] {
			name, key, _ := strings.Cut(anchor, "-")
			shown.Timeline.Entries[i].Href = paths.Within(shown.Summary.UID.String(), name, key)
		}
	}
}

// placeOf returns the place of an application's page.
func placeOf(summary application.Summary) page.Place {
	return applicationsPlace.Under(paths.Applications, summary.Name())
}

// about describes an application to a user who is about to change it.
func about(s application.Summary) string {
	parts := []string{s.Name(), ui.Value(s.Reference), s.MerchantName}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " · ")
}

// maxUndelivered is the highest count of an application's failed deliveries.
const maxUndelivered = 1000

// undelivered says how many webhooks of an application used up their attempts and were not
// made good, which is what most questions about an application are about. It returns nil if
// there are none.
func (f *Feature) undelivered(ctx context.Context, uid uuid.UUID) (*ui.Notice, error) {
	filter := delivery.Filter{
		ApplicationUID: uid, State: delivery.StateFailed, Open: true, Resend: new(false),
	}
	found, _, err := f.Webhooks.Deliveries.List(ctx, filter, postgres.Paging{Limit: 1})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	count, err := f.Webhooks.Deliveries.Count(ctx, filter, maxUndelivered)
	newest := found[0]
	notice := &ui.Notice{
		Tone: ui.Warn, Title: "A webhook of this application did not arrive",
		Text: fmt.Sprintf("“%s” used up its attempts at %s.", newest.Event.Title(), newest.Label()),
		Href: paths.To(paths.Delivery, newest.UID.String()), Action: "See why",
	}
	if count > 1 {
		notice.Title = ui.Number(count) + " webhooks of this application did not arrive"
		notice.Text = "The newest: " + notice.Text
		notice.Href = paths.Where(paths.Deliveries, "application", uid.String(), "state",
			string(delivery.StateFailed), "open", "yes", "resend", "no")
		notice.Action = "See them"
	}
	return notice, err
}
