package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/views/applications"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// application shows one application with its loan and its timeline.
func (c *Console) application(ctx echo.Context) error {
	uid, err := pathUID(ctx)
	if err != nil {
		return err
	}
	page, err := c.applicationPage(ctx.Request().Context(), uid)
	if err != nil {
		return err
	}
	err = c.fillTimeline(ctx.Request().Context(), &page, uid, ctx.QueryParams())
	if err != nil {
		return err
	}
	if page.Undelivered, err = c.undelivered(ctx.Request().Context(), uid); err != nil {
		return err
	}
	page.Frame, err = c.frame(ctx, ui.SectionApplications, page.Row.Name(),
		ui.Crumb{Label: "Applications", Href: paths.Applications},
		ui.Crumb{Label: page.Row.Name()})
	if err != nil {
		return err
	}
	page.Notice = c.takeNotice(ctx)
	return render(ctx, http.StatusOK, applications.ApplicationDetailPage(page))
}

// applicationPage loads an application with everything but its timeline.
func (c *Console) applicationPage(
	ctx context.Context, uid uuid.UUID,
) (applications.ApplicationPage, error) {
	summary, err := c.Applications.Summary(ctx, uid)
	if err != nil {
		return applications.ApplicationPage{}, err
	}
	app, err := c.Applications.Get(ctx, application.Caller{}, uid)
	if err != nil {
		return applications.ApplicationPage{}, err
	}
	page := applications.ApplicationPage{
		Row: applicationRow(summary), Source: sourceWord(app.Source),
		Communications: communicationsWord(app.Communications), Document: documentWord(app.Document),
		Updated: app.UpdatedAt, Phone: value(app.Borrower.Phone), Project: app.Project.Name,
		Description: value(app.Project.Description), Address: value(app.Project.Address),
		Decided: app.Decided, Offers: offerViews(app),
	}
	if app.Borrower.AnnualIncome != nil {
		page.Income = ui.Amount(*app.Borrower.AnnualIncome)
	}
	if page.Hold, err = c.holdView(ctx, uid); err != nil {
		return applications.ApplicationPage{}, err
	}
	tasks, err := c.Applications.Tasks(ctx, uid)
	if err != nil {
		return applications.ApplicationPage{}, err
	}
	for _, task := range tasks {
		page.Tasks = append(page.Tasks, applications.TaskView{
			UID: task.UID.String(), Title: task.Title, Status: string(task.Status),
			Created: task.CreatedAt, Updated: task.UpdatedAt,
		})
	}
	if app.LoanOpen {
		if err := c.fillLoan(ctx, &page, uid); err != nil {
			return applications.ApplicationPage{}, err
		}
	}
	err = c.fillActions(ctx, &page, summary, app)
	return page, err
}

func (c *Console) fillLoan(
	ctx context.Context, page *applications.ApplicationPage, uid uuid.UUID,
) error {
	open, err := c.Loans.Get(ctx, application.Caller{}, uid)
	if err != nil {
		return err
	}
	page.Loan = loanView(open)
	certificates, err := c.Loans.Certificates(ctx, uid)
	if err != nil {
		return err
	}
	for _, certificate := range certificates {
		shown := applications.CertificateView{
			UID: certificate.UID.String(), Created: certificate.CreatedAt,
			Draw: certificate.DisbursementNumber, Metadata: certificate.Metadata,
		}
		for _, file := range certificate.Files {
			shown.Files = append(shown.Files, applications.FileView{
				UID: file.UID.String(), Name: file.Name, Type: file.ContentType, Size: file.Size,
				SHA256: file.SHA256,
			})
		}
		page.Certificates = append(page.Certificates, shown)
	}
	return nil
}

func loanView(open loan.Loan) *applications.LoanView {
	shown := &applications.LoanView{
		Product: open.ProductCode, Amount: ui.Amount(open.Amount),
		Drawn: ui.Amount(open.Drawn()), Balance: ui.Amount(open.Balance()),
		State: loanState(open),
	}
	if !open.Amount.Equal(open.OriginalAmount) {
		shown.Original = ui.Amount(open.OriginalAmount)
	}
	taken := map[int]string{}
	for _, draw := range open.History {
		if draw.Status != lending.FundingCancelled {
			taken[draw.Stage] = ui.Amount(draw.Gross)
		}
		shown.Draws = append(shown.Draws, applications.DrawView{
			ID: draw.ID, Number: draw.Number, Stage: draw.Stage, Kind: string(draw.Kind),
			Status: string(draw.Status), Gross: ui.Amount(draw.Gross),
			Fee: ui.Amount(draw.Fee), Net: ui.Amount(draw.Net),
			Requested: draw.RequestedAt, Settled: value(draw.SettledAt),
		})
	}
	for _, stage := range open.Stages {
		shown.Stages = append(shown.Stages, applications.StageView{
			Number: stage.Number, Percent: stage.Percent.String(),
			Scheduled: ui.Amount(stage.Scheduled), Drawn: taken[stage.Number],
		})
	}
	return shown
}

// loanState says what keeps the next draw from being requested, if anything.
func loanState(open loan.Loan) string {
	switch {
	case open.IsCompleted():
		return "Drawn to the end"
	case open.IsPending():
		return "A draw is pending; the next one waits for it"
	case open.Status != lending.StatusApproved:
		return "No draw while the application is not Approved"
	}
	return "The next draw may be requested"
}

func offerViews(app application.Application) []applications.OfferView {
	selected := ""
	if app.SelectedProductUID != nil {
		selected = app.SelectedProductUID.String()
	}
	offers := make([]applications.OfferView, 0, len(app.Offers))
	for _, offer := range app.Offers {
		offers = append(offers, applications.OfferView{
			ProductUID: offer.ProductUID, Code: offer.ProductCode, Name: offer.ProductName,
			Approved: ui.Amount(offer.ApprovedAmount), Maximum: ui.Amount(offer.MaxAmount),
			Term: offer.Term, Rate: offer.InterestRate.String(),
			MerchantFee: offer.MerchantFeePercentage.String(),
			BorrowerMax: ui.Amount(offer.BorrowerMax), ProjectMax: ui.Amount(offer.ProjectMax),
			Selected: offer.ProductUID == selected,
		})
	}
	return offers
}

func sourceWord(source lending.Source) string {
	if source == lending.SourceConsole {
		return "An operator, in the console"
	}
	return "The partner, through the API"
}

func communicationsWord(state lending.Communications) string {
	if state == lending.CommunicationsPaused {
		return "Paused until the offer is accepted"
	}
	return "Enabled"
}

func documentWord(status lending.DocumentStatus) string {
	switch status {
	case lending.DocumentSent:
		return "Sent"
	case lending.DocumentSigned:
		return "Signed"
	case lending.DocumentNone:
	}
	return "Not sent"
}

// timelinePage is how many moments a page of the timeline holds.
const timelinePage = 100

// fillTimeline loads a page of the moments of the chosen kinds; kinds that do
// not exist are left out.
func (c *Console) fillTimeline(
	ctx context.Context, page *applications.ApplicationPage, uid uuid.UUID, query url.Values,
) error {
	filter := application.TimelineFilter{Limit: timelinePage}
	for _, kind := range application.MomentKinds() {
		if slices.Contains(query["show"], string(kind)) {
			filter.Kinds = append(filter.Kinds, kind)
		}
	}
	var err error
	if filter.Before, err = application.ParseMomentCursor(query.Get("before")); err != nil {
		return err
	}
	timeline, err := c.Applications.Timeline(ctx, uid, filter)
	if err != nil {
		return err
	}
	shown := url.Values{}
	for _, kind := range filter.Kinds {
		shown.Add("show", string(kind))
	}
	path := paths.To(paths.Application, uid.String())
	page.Kinds = kindTabs(uid, filter.Kinds)
	if !timeline.Next.IsZero() {
		page.Older = path + "?" + with(shown, "before", timeline.Next.String()).Encode()
	}
	if !filter.Before.IsZero() {
		page.Newest = path + "?" + shown.Encode()
	}
	for _, moment := range timeline.Moments {
		page.Moments = append(page.Moments, momentView(uid, moment))
	}
	return nil
}

// kindTabs switch each kind of moment on or off.
func kindTabs(uid uuid.UUID, chosen []application.MomentKind) []ui.Tab {
	path := paths.To(paths.Application, uid.String())
	tabs := []ui.Tab{{Label: "All", Href: path, Current: len(chosen) == 0}}
	for _, kind := range application.MomentKinds() {
		query := url.Values{}
		for _, other := range application.MomentKinds() {
			if slices.Contains(chosen, other) != (other == kind) {
				query.Add("show", string(other))
			}
		}
		tab := ui.Tab{Label: momentWords[kind].tab, Href: path, Current: slices.Contains(chosen, kind)}
		if len(query) > 0 {
			tab.Href += "?" + query.Encode()
		}
		tabs = append(tabs, tab)
	}
	return tabs
}

// momentWords are how a kind of moment is called and marked.
var momentWords = map[application.MomentKind]struct {
	tab, icon string
	tone      ui.Tone
}{
	application.MomentStatus:   {"Status", "zap", ui.Calm},
	application.MomentOffer:    {"Amount and terms", "percent", ui.Odd},
	application.MomentDocument: {"Documents", "file-text", ui.Calm},
	application.MomentFunding:  {"Draws and funding", "banknote", ui.Good},
	application.MomentTask:     {"Tasks", "list-checks", ui.Warn},
	application.MomentCall:     {"API calls", "activity", ui.Mute},
	application.MomentDelivery: {"Deliveries", "send", ui.Mute},
	application.MomentEmail:    {"E-mails", "mail", ui.Mute},
	application.MomentOperator: {"Operators", "user", ui.Odd},
}

// momentView words one moment.
func momentView(uid uuid.UUID, m application.Moment) applications.MomentView {
	words := momentWords[m.Kind]
	shown := applications.MomentView{
		ID: m.Name + "-" + m.ID, At: m.At, Icon: words.icon, Tone: words.tone,
	}
	switch {
	case m.Kind == application.MomentCall:
		wordCall(&shown, m)
	case m.Name == application.NameAttempt:
		wordAttempt(&shown, m)
	case m.Kind == application.MomentDelivery:
		wordDelivery(&shown, m)
	case m.Kind == application.MomentEmail:
		wordEmail(&shown, m)
	case m.Kind == application.MomentOperator:
		shown.Title, shown.Text = m.Name, "by "+m.Party
		if m.Text != "" {
			shown.Text += ": " + m.Text
		}
	case lending.EventKind(m.Name).IsKnown():
		shown.Title = eventTitle(m)
		shown.Text = eventText(m)
		shown.Href = paths.With(paths.Deliveries, url.Values{
			"application": {uid.String()}, "event": {m.Name},
		})
	default:
		wordOwn(&shown, m)
	}
	return shown
}
