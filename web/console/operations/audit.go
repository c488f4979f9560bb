package operations

import (
	"context"
	"net/http"
	"strconv"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/views/operations"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/list"
	"drawbridge/web/console/page"
)

var auditPlace = page.Place{Section: ui.SectionAudit, Title: "Audit log"}

// audit lists who did what.
func (f *Feature) audit() list.Spec[operator.Record] {
	kinds := list.Options("Any kind", []string{
		"api_request", "application", "attention_item", "audit_log", "bulk_resend", "client",
		"delivery", "draw", "email", "event", "loan", "mail_settings", "merchant", "partner",
		"product", "queue", "job", "secrets_key", "settings", "statement_key", "subscription", "user",
	}, operations.KindWord)
	return list.Spec[operator.Record]{
		Name: "console.audit", Path: paths.Audit, Role: operator.RoleSupport, Place: auditPlace,
		Intro: "Who did what, when, and from which address. Nothing in it can be changed or deleted.",
		One:   "entry", Many: "entries", Order: "newest first", SummaryBelow: true, Saved: true,
		Filters: []list.Filter{
			{Name: "actor", Label: "Who", Max: 254, Placeholder: "ada@lender.example"},
			{
				Name: "action", Label: "Action", Max: 100, Placeholder: "user.",
				Hint: "A dot at the end finds all of a kind.",
			},
			{
				Name: "kind", Label: "Subject is a", Chip: "Kind ", Kind: list.Choice, Options: kinds,
				Open: true, Word: operations.KindWord,
			},
			{Name: "subject", Label: "Subject", Max: 254, Hint: "An id or an address, whole."},
			{Name: "since", Label: "From", Kind: list.Time},
			{Name: "until", Label: "To", Kind: list.Time},
		},
		Read: f.readAudit,
		CheckPlace: func(text string) bool {
			entry, err := strconv.ParseInt(text, 10, 64)
			return err == nil && entry > 0
		},
		Table: operations.AuditTable,
		NoMatch: ui.EmptyProps{
			Title: "No entry matches these filters",
			Text:  "Remove a filter. Who and subject must be whole, as they were written.",
		},
		Empty: ui.EmptyProps{
			Icon: "history", Title: "Nothing was done yet",
			Text: "Each change by a person or a command leaves an entry here, and so does each " +
				"download of a list.",
		},
		File: &list.File[operator.Record]{
			Path: paths.AuditCSV, Name: "audit-log", Action: "audit_log.export",
			Subject: "audit_log", ByLink: true,
			Columns: []string{
				"entry", "at", "actor", "address", "action", "subject_kind", "subject", "reason",
				"before", "after",
			},
			Cells: func(r operator.Record) []string {
				return []string{
					strconv.FormatInt(r.ID, 10), list.CellTime(r.At), r.Actor, r.Address, r.Action,
					r.SubjectKind, r.Subject, r.Reason, maskedState(r.Before), maskedState(r.After),
				}
			},
		},
	}
}

func (f *Feature) readAudit(v *list.Values) list.Source[operator.Record] {
	filter := operator.AuditFilter{
		Actor: v.Text("actor"), Action: v.Text("action"), SubjectKind: v.Text("kind"),
		Subject: v.Text("subject"),
	}
	filter.Since, filter.Until = v.Span()
	return list.Source[operator.Record]{
		Load: func(
			ctx context.Context, from string, limit int,
		) (records []operator.Record, next string, err error) {
			filter := filter // the count reads it concurrently
			filter.Limit, filter.Before = limit, 0
			if from != "" {
				if filter.Before, err = strconv.ParseInt(from, 10, 64); err != nil {
					return nil, "", err
				}
			}
			records, more, err := operator.AuditLog{DB: f.Operators.DB}.List(ctx, filter)
			if err == nil && more {
				next = strconv.FormatInt(records[len(records)-1].ID, 10)
			}
			return records, next, err
		},
		Count: func(ctx context.Context, limit int) (int, error) {
			return operator.AuditLog{DB: f.Operators.DB}.Count(ctx, filter, limit)
		},
	}
}

// auditEntry shows one entry with the state before and after.
func (f *Feature) auditEntry(ctx echo.Context) error {
	id, err := strconv.ParseInt(ctx.Param("entry"), 10, 64)
	if err != nil {
		return lending.NewError(lending.CodeNotFound,
			"%q is not an entry of the audit log", ctx.Param("entry"))
	}
	request := ctx.Request().Context()
	record, err := operator.AuditLog{DB: f.Operators.DB}.Get(request, id)
	if err != nil {
		return err
	}
	differences := stateDifferences(record.Before, record.After)
	for i, difference := range differences {
		if difference.Field != "partner_uid" {
			continue
		}
		for _, side := range []*string{&differences[i].Before, &differences[i].After} {
			uid, err := uuid.Parse(*side)
			if err != nil {
				continue
			}
			found, err := f.Partners.Partner(request, uid)
			switch {
			case lending.ErrorCode(err) == lending.CodeNotFound: // retention has removed it
			case err != nil:
				return err
			default:
				*side = found.Name + ", " + *side
			}
		}
	}
	place := auditPlace.Under(paths.Audit, operations.ActionWords(record.Action))
	return f.Show(ctx, http.StatusOK, place, operations.AuditEntry(record, differences))
}
