package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/email"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/emails"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// stateUnknown is a view of the e-mail list besides the states: failed mails
// that may have arrived.
const stateUnknown = "unknown"

// emails lists the e-mail log.
func (c *Console) emails(ctx echo.Context) error {
	filter, shown, cursor := readEmailFilter(ctx.QueryParams())
	page := emails.EmailList{
		Filter: shown, Tabs: emailTabs(shown), Active: activeEmailFilters(shown),
		Kinds: kindOptions(), Settings: mailSettingsLink(ctx), Export: emailQuery(shown).Encode(),
	}
	status := http.StatusOK
	if len(shown.Faults) > 0 {
		status = http.StatusBadRequest
	} else if err := c.fillEmails(ctx, &page, filter, cursor); err != nil {
		return err
	}
	var err error
	if page.Views, err = c.viewsBar(ctx, paths.Emails, emailQuery(shown)); err != nil {
		return err
	}
	page.Frame, err = c.frame(ctx, ui.SectionEmails, "E-mails", ui.Crumb{Label: "E-mails"})
	if err != nil {
		return err
	}
	page.Notice = c.takeNotice(ctx)
	return render(ctx, status, emails.EmailListPage(page))
}

// fillEmails loads the page of the list that begins after the cursor.
func (c *Console) fillEmails(
	ctx echo.Context, page *emails.EmailList, filter email.Filter, cursor postgres.Cursor,
) error {
	mails, next, err := email.List(ctx.Request().Context(), c.DB, filter, cursor, pageSize)
	if err != nil {
		return err
	}
	query := emailQuery(page.Filter)
	page.Rows = emailRows(mails)
	if !cursor.IsZero() {
		page.Newest = paths.With(paths.Emails, query)
	}
	if !next.IsZero() {
		page.Older = paths.With(paths.Emails, with(query, "cursor", next.String()))
	}
	return nil
}

// mailSettingsLink leads to the mail settings; it is empty for those who may
// not change them.
func mailSettingsLink(ctx echo.Context) string {
	if currentUser(ctx).Role.Allows(operator.RoleAdmin) {
		return paths.MailSettings
	}
	return ""
}

// readEmailFilter reads the filter of the e-mail list from its address. Wrong
// values are left out of the filter, and named in the view's faults.
func readEmailFilter(
	query url.Values,
) (email.Filter, emails.EmailFilter, postgres.Cursor) {
	shown := emails.EmailFilter{
		State: query.Get("state"), Kind: query.Get("kind"),
		Application: strings.TrimSpace(query.Get("application")),
		To:          strings.TrimSpace(query.Get("to")), Faults: map[string]string{},
	}
	filter := email.Filter{
		ApplicationUID: readUID(shown.Faults, "application", shown.Application),
		Kind:           email.Kind(shown.Kind), ToAddress: shown.To,
		OutcomeUnknown: shown.State == stateUnknown,
	}
	if !filter.OutcomeUnknown {
		filter.State = email.State(shown.State)
	}
	if filter.State != "" && !slices.Contains(email.States(), filter.State) {
		shown.Faults["state"] = "There is no such state; choose one above."
	}
	if filter.Kind != "" && !slices.Contains(email.Kinds(), filter.Kind) {
		shown.Faults["kind"] = "There is no such kind; choose one of the list."
	}
	if shown.To != "" && email.CheckAddress(shown.To) != nil {
		shown.Faults["to"] = "This is not an e-mail address; write it as ana@example.com."
	}
	cursor, err := postgres.ParseCursor(query.Get("cursor"))
	if err != nil {
		shown.Faults["cursor"] = "The page's place in the list cannot be read; start from the newest."
	}
	return filter, shown, cursor
}

// emailQuery writes a filter as the query of an address, the inverse of
// readEmailFilter.
func emailQuery(shown emails.EmailFilter) url.Values {
	query := url.Values{}
	for name, value := range map[string]string{
		"state": shown.State, "kind": shown.Kind, "application": shown.Application,
		"to": shown.To,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}

// emailTabs are the views of the list by state, what needs a human first.
func emailTabs(shown emails.EmailFilter) []ui.Tab {
	query := emailQuery(shown)
	tabs := []ui.Tab{{
		Label: "All", Href: paths.With(paths.Emails, with(query, "state", "")),
		Current: shown.State == "",
	}}
	for _, state := range []string{
		emails.EmailFailed, stateUnknown, emails.EmailQueued, emails.EmailNotSent,
		emails.EmailSuppressed, emails.EmailSent,
	} {
		label := emails.EmailChip(state, false).Word
		if state == stateUnknown {
			label = emails.EmailChip(emails.EmailFailed, true).Word
		}
		tabs = append(tabs, ui.Tab{
			Label: label, Href: paths.With(paths.Emails, with(query, "state", state)),
			Current: shown.State == state,
		})
	}
	return tabs
}

// activeEmailFilters are the filters in force besides the state, each with the
// address of the list without it.
func activeEmailFilters(shown emails.EmailFilter) []ui.ActiveFilter {
	query := emailQuery(shown)
	var active []ui.ActiveFilter
	for _, filter := range []struct{ name, label, value string }{
		{"kind", "Kind", ui.EmailKind(shown.Kind)},
		{"to", "To", shown.To},
		{"application", "Application", shown.Application},
	} {
		if filter.value != "" {
			active = append(active, ui.ActiveFilter{
				Label: filter.label + " " + filter.value,
				Href:  paths.With(paths.Emails, with(query, filter.name, "")),
			})
		}
	}
	return active
}

// kindOptions are the choices of the filter form.
func kindOptions() []ui.Option {
	options := []ui.Option{{Label: "All kinds"}}
	for _, kind := range email.Kinds() {
		options = append(options, ui.Option{
			Value: string(kind), Label: ui.EmailKind(string(kind)),
		})
	}
	return options
}

func emailRows(mails []email.Email) []ui.EmailRow {
	rows := make([]ui.EmailRow, 0, len(mails))
	for _, mail := range mails {
		rows = append(rows, emailRow(mail))
	}
	return rows
}

func emailRow(m email.Email) ui.EmailRow {
	row := ui.EmailRow{
		UID: m.EmailUID.String(), Kind: string(m.Kind), Name: m.ToName, To: m.ToAddress,
		Subject: m.Subject, State: string(m.State), Reason: m.Reason, Unknown: m.OutcomeUnknown,
		Attempts: m.Tries(), Created: m.CreatedAt,
		Resend: m.ResendOf.Valid, By: m.ResentBy, Why: m.ResendReason,
	}
	switch {
	case m.State != email.StateQueued:
	case m.WaitsFor == email.WaitServer:
		row.Waits = "Waits: the mail server refuses us"
	case m.WaitsFor == email.WaitWelcome:
		row.Waits = "Waits for the welcome e-mail"
	default:
		row.NextAttempt = value(m.NextAttemptAt)
	}
	if m.ApplicationUID.Valid {
		row.Application = m.ApplicationUID.UUID.String()
	}
	return row
}
