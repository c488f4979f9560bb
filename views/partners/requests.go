package partners

import (
	"fmt"
	"strings"
	"time"

	"drawbridge/internal/apilog"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// RequestChip describes the answer to a request.
func RequestChip(status int) ui.ChipProps {
	switch {
	case status >= 500:
		return ui.ChipProps{Icon: "circle-x", Word: fmt.Sprint(status), Tone: ui.Bad}
	case status == 429:
		return ui.ChipProps{Icon: "clock", Word: fmt.Sprint(status), Tone: ui.Warn}
	case status >= 400:
		return ui.ChipProps{Icon: "triangle-alert", Word: fmt.Sprint(status), Tone: ui.Warn}
	}
	return ui.ChipProps{Icon: "circle-check", Word: fmt.Sprint(status), Tone: ui.Good}
}

// outcome is what the answer to a request said, in words.
func outcome(r apilog.Request) string {
	text := ui.HTTPStatus(r.Status)
	if r.ErrorCode != "" {
		text += ", " + string(r.ErrorCode)
	}
	if len(r.ErrorFields) > 0 {
		text += " (" + strings.Join(r.ErrorFields, ", ") + ")"
	}
	return text
}

// RequestTable lists requests.
func RequestTable(rows []apilog.Request) ui.TableProps[apilog.Request] {
	return ui.TableProps[apilog.Request]{
		Caption: "Requests, newest first",
		RowID:   func(r apilog.Request) string { return "r-" + r.UID.String() },
		Href:    func(r apilog.Request) string { return paths.To(paths.Request, r.UID.String()) },
		Rows:    rows,
		Columns: []ui.Column[apilog.Request]{
			{
				Title: "Answer", Class: "w-code",
				Chip: func(r apilog.Request) ui.ChipProps { return RequestChip(r.Status) },
			},
			{Title: "Request", Header: true, Cell: requestNameCell},
			{Title: "Error", Class: "col-b w-place", Cell: requestErrorCell},
			{Title: "Partner", Class: "col-b w-place", Cell: requestPartnerCell},
			{
				Title: "Took", Class: "col-a w-rate end",
				Text: func(r apilog.Request) string { return ui.Duration(r.Duration) },
			},
			{
				Title: "When", Class: "w-time w-day end",
				Time: func(r apilog.Request) time.Time { return r.At },
			},
		},
	}
}

// shortPath is the path of a request with the middle of its ids left out.
func shortPath(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		parts[i] = ui.ShortUID(part)
	}
	return strings.Join(parts, "/")
}
