package partners

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/apilog"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// RequestTable lists requests.
func RequestTable(rows []apilog.Request) ui.TableProps[apilog.Request] {
	return ui.TableProps[apilog.Request]{
		Caption: "Requests, newest first",
		RowID:   func(r apilog.Request) string { return "r-" + r.UID.String() },
		Rows:    rows,
		Columns: []ui.Column[apilog.Request]{
			ui.Chips("Answer", "w-code",
				func(r apilog.Request) ui.ChipProps { return ui.AnswerChip(r.Status) }),
			{Title: "Request", Header: true, Cell: requestNameCell},
			{Title: "Error", Class: "col-b w-place", Cell: requestErrorCell},
			{Title: "Partner", Class: "col-b w-place", Cell: requestPartnerCell},
			ui.Texts("Took", "col-a w-rate end",
				func(r apilog.Request) string { return ui.Duration(r.Duration) }),
			ui.Times("When", "w-time w-day end", func(r apilog.Request) time.Time { return r.At }),
		},
	}
}

// answer describes the answer in words.
func answer(r apilog.Request) string {
	text := ui.HTTPStatus(r.Status)
	if r.ErrorCode != "" {
		text += ", " + string(r.ErrorCode)
	}
	if len(r.ErrorFields) > 0 {
		text += " (" + strings.Join(r.ErrorFields, ", ") + ")"
	}
	return text
}

// shortPath is the path with shortened ids.
func shortPath(r apilog.Request) string {
	parts := strings.Split(r.Path, "/")
	for i, part := range parts {
		parts[i] = ui.ShortUID(part)
	}
	return strings.Join(parts, "/")
}

// clientHref links to the client, unless the request only claimed it, or it is one of the
// lender's systems and the reader may not see those.
func clientHref(ctx context.Context, r apilog.Request) string {
	switch {
	case r.Authenticated && r.PartnerUID != uuid.Nil:
		return paths.To(paths.Client, r.ClientID)
	case r.Authenticated && ui.May(ctx, paths.LenderClient):
		return paths.To(paths.LenderClient, r.ClientID)
	}
	return ""
}
