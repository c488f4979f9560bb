package console

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/views/operations"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// auditBatch is how many lines of the audit log a file takes at a time.
const auditBatch = 500

// subjectKinds are what entries are about, as far as the filter offers them.
var subjectKinds = []string{
	"application", "client", "delivery", "email", "mail_settings", "merchant", "partner",
	"product", "queue", "job", "settings", "subscription", "user",
}

// auditRoutes lists the pages of the audit log.
func (c *Console) auditRoutes() []Route {
	const support = operator.RoleSupport
	return []Route{
		{http.MethodGet, paths.Audit, "console.audit", support, c.audit},
		{http.MethodGet, paths.AuditCSV, "console.audit.csv", support, c.auditCSVFile},
		{http.MethodGet, paths.AuditEntry, "console.audit.entry", support, c.auditEntry},
	}
}

// audit lists the audit log.
func (c *Console) audit(ctx echo.Context) error {
	filter, shown := c.reader(ctx).readAuditFilter(ctx.QueryParams())
	query := auditQuery(shown)
	page := operations.AuditLog{
		Filter: shown, Active: activeAuditFilters(shown), Kinds: subjectKindOptions(shown.Kind),
		CSVHref: paths.AuditCSV + "?" + query.Encode(),
	}
	status := http.StatusOK
	if len(shown.Faults) > 0 {
		status = http.StatusBadRequest
	} else if err := c.fillAudit(ctx, &page, filter); err != nil {
		return err
	}
	var err error
	if page.Views, err = c.viewsBar(ctx, paths.Audit, query); err != nil {
		return err
	}
	page.Frame, err = c.Frame(ctx, ui.SectionAudit, "Audit log", ui.Crumb{Label: "Audit log"})
	if err != nil {
		return err
	}
	return render(ctx, status, operations.AuditLogPage(page))
}

func (c *Console) fillAudit(
	ctx echo.Context, page *operations.AuditLog, filter operator.AuditFilter,
) error {
	request := ctx.Request().Context()
	filter.Limit = pageSize
	count := startCount(request, c, filter, c.Operators.CountAudit)
	records, more, err := c.Operators.AuditLog(request, filter)
	if err != nil {
		return err
	}
	all, err := count.with(len(records), filter.Before == 0 && !more)
	if err != nil {
		return err
	}
	page.Summary = all.in("entry", "entries") + ", newest first"
	for _, record := range records {
		page.Rows = append(page.Rows, auditRow(record))
	}
	query := auditQuery(page.Filter)
	if filter.Before > 0 {
		page.Newest = paths.With(paths.Audit, query)
	}
	if more {
		last := strconv.FormatInt(records[len(records)-1].ID, 10)
		page.Older = paths.With(paths.Audit, with(query, "cursor", last))
	}
	return nil
}

// readAuditFilter reads the filter of the audit log from its address. Wrong
// values are left out of the filter, and named in the view's faults.
func (who reader) readAuditFilter(
	query url.Values,
) (operator.AuditFilter, operations.AuditFilter) {
	get := func(name string) string { return strings.TrimSpace(query.Get(name)) }
	shown := operations.AuditFilter{
		Actor: get("actor"), Action: get("action"), Kind: get("kind"), Subject: get("subject"),
		Faults: map[string]string{},
	}
	filter := operator.AuditFilter{
		Actor: shown.Actor, Action: shown.Action, SubjectKind: shown.Kind, Subject: shown.Subject,
	}
	filter.Since, shown.Since, shown.SinceLocal = who.moment(shown.Faults, "since", query)
	filter.Until, shown.Until, shown.UntilLocal = who.moment(shown.Faults, "until", query)
	if !filter.Until.IsZero() && !filter.Since.Before(filter.Until) {
		shown.Faults["until"] = "The end must come after the beginning."
	}
	if text := query.Get("cursor"); text != "" {
		cursor, err := strconv.ParseInt(text, 10, 64)
		if err != nil || cursor < 1 {
			shown.Faults["cursor"] = "The page's place in the list cannot be read; " +
				"start from the newest."
		}
		filter.Before = cursor
	}
	return filter, shown
}

// auditQuery writes a filter as the query of an address, the inverse of
// readAuditFilter.
func auditQuery(shown operations.AuditFilter) url.Values {
	query := url.Values{}
	for name, value := range map[string]string{
		"actor": shown.Actor, "action": shown.Action, "kind": shown.Kind,
		"subject": shown.Subject, "since": shown.Since, "until": shown.Until,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}

func activeAuditFilters(shown operations.AuditFilter) []ui.ActiveFilter {
	query := auditQuery(shown)
	var active []ui.ActiveFilter
	for _, filter := range []struct{ name, label, value string }{
		{"actor", "Who", shown.Actor},
		{"action", "Action", shown.Action},
		{"kind", "Kind", operations.KindWord(shown.Kind)},
		{"subject", "Subject", shown.Subject},
		{"since", "From", strings.Replace(shown.Since, "T", " ", 1)},
		{"until", "To", strings.Replace(shown.Until, "T", " ", 1)},
	} {
		if filter.value != "" {
			active = append(active, ui.ActiveFilter{
				Label: filter.label + " " + filter.value,
				Href:  paths.With(paths.Audit, with(query, filter.name, "")),
			})
		}
	}
	return active
}

// subjectKindOptions are the choices of the filter form, among them the one in
// force whatever it is.
func subjectKindOptions(current string) []ui.Option {
	options := []ui.Option{{Label: "Any kind"}}
	known := current == ""
	for _, kind := range subjectKinds {
		options = append(options, ui.Option{
			Value: kind, Label: operations.KindWord(kind),
		})
		known = known || kind == current
	}
	if !known {
		options = append(options, ui.Option{Value: current, Label: current})
	}
	return options
}

func auditRow(record operator.Record) operations.AuditRow {
	return operations.AuditRow{
		ID: record.ID, At: record.At, Actor: record.Actor, Address: record.Address,
		Action: record.Action, Kind: record.SubjectKind, Subject: record.Subject,
		SubjectHref: subjectHref(record.SubjectKind, record.Subject), Reason: record.Reason,
	}
}

// subjectHref is the page of what an entry is about; empty where there is none.
func subjectHref(kind, subject string) string {
	if subject == "" || subject == "csv" {
		return ""
	}
	switch kind {
	case "application":
		return paths.To(paths.Application, subject)
	case "delivery":
		return paths.To(paths.Delivery, subject)
	case "client":
		return paths.To(paths.Client, subject)
	case "merchant":
		return paths.To(paths.Merchant, subject)
	case "partner":
		return paths.To(paths.Partner, subject)
	case "email":
		return paths.To(paths.Email, subject)
	case "mail_settings":
		return paths.MailSettings
	case "subscription":
		return paths.To(paths.Subscription, subject)
	case "bulk_resend":
		return paths.To(paths.Bulk, subject)
	case "user":
		return paths.With(paths.People, url.Values{"q": {subject}})
	}
	return ""
}

// auditEntry shows one entry with the state before and after.
func (c *Console) auditEntry(ctx echo.Context) error {
	id, err := strconv.ParseInt(ctx.Param("entry"), 10, 64)
	if err != nil {
		return lending.NewError(lending.CodeNotFound,
			"%q is no entry of the audit log", ctx.Param("entry"))
	}
	record, err := c.Operators.AuditRecord(ctx.Request().Context(), id)
	if err != nil {
		return err
	}
	differences := stateDifferences(record.Before, record.After)
	if err := c.namePartners(ctx.Request().Context(), differences); err != nil {
		return err
	}
	done := operations.ActionWords(record.Action)
	frame, err := c.Frame(ctx, ui.SectionAudit, done,
		ui.Crumb{Label: "Audit log", Href: paths.Audit}, ui.Crumb{Label: done})
	if err != nil {
		return err
	}
	return render(ctx, http.StatusOK, operations.AuditEntryPage(operations.AuditEntry{
		Frame: frame, AuditRow: auditRow(record),
		Differences: differences,
	}))
}

// namePartners puts a partner's name before its id.
func (c *Console) namePartners(ctx context.Context, differences []operations.Difference) error {
	for i, difference := range differences {
		if difference.Field != "partner_uid" {
			continue
		}
		for _, side := range []*string{&differences[i].Before, &differences[i].After} {
			uid, err := uuid.Parse(*side)
			if err != nil {
				continue
			}
			found, err := c.Partners.Partner(ctx, uid)
			if lending.ErrorCode(err) == lending.CodeNotFound {
				continue // retention may have removed it
			}
			if err != nil {
				return err
			}
			*side = found.Name + ", " + *side
		}
	}
	return nil
}

// auditCSVFile sends the audit log under a filter as a file.
func (c *Console) auditCSVFile(ctx echo.Context) error {
	filter, shown := c.reader(ctx).readAuditFilter(ctx.QueryParams())
	if len(shown.Faults) > 0 {
		return lending.NewError(lending.CodeValidation,
			"The filter cannot be read. Open the audit log and set it again.")
	}
	filter.Limit = auditBatch
	done := false
	return c.sendCSV(ctx, csvFile{
		Name: "audit-log", Action: "audit_log.export", SubjectKind: "audit_log",
		Filter: auditQuery(shown),
		Columns: []string{
			"entry", "at", "actor", "address", "action", "subject_kind", "subject", "reason",
			"before", "after",
		},
		Next: func() ([][]string, error) {
			if done {
				return nil, nil
			}
			records, more, err := c.Operators.AuditLog(ctx.Request().Context(), filter)
			if err != nil || len(records) == 0 {
				return nil, err
			}
			filter.Before, done = records[len(records)-1].ID, !more
			return auditCells(records), nil
		},
	})
}

func auditCells(records []operator.Record) [][]string {
	rows := make([][]string, 0, len(records))
	for _, r := range records {
		rows = append(rows, []string{
			strconv.FormatInt(r.ID, 10), r.At.UTC().Format(time.RFC3339Nano), r.Actor, r.Address,
			r.Action, r.SubjectKind, r.Subject, r.Reason,
			maskedState(r.Before), maskedState(r.After),
		})
	}
	return rows
}
