package partners

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/apilog"
	"drawbridge/internal/lending"
	view "drawbridge/views/partners"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/list"
	"drawbridge/web/console/page"
)

var requestsPlace = page.Place{Section: ui.SectionRequests, Title: "API requests"}

// requests lists the partners' API requests.
func (f *Feature) requests() list.Spec[apilog.Request] {
	codes := list.Options("Any or none", lending.Codes(), nil)
	methods := list.Options("Any", []string{http.MethodGet, http.MethodPost, http.MethodPut}, nil)
	text := func(name, label string) list.Filter {
		return list.Filter{Name: name, Label: label, Max: 255}
	}
	return list.Spec[apilog.Request]{
		Name: "console.requests", Path: paths.Requests, Role: support, Place: requestsPlace,
		IntroOf: func(ctx context.Context) (string, error) {
			kept, err := f.Retention.Settings(ctx)
			return "What partners asked of the API, without bodies. Kept for " +
				ui.Plural(kept.APIRequestDays, "day", "days") + ".", err
		},
		One: "request", Many: "requests", Order: "Newest first", Saved: true,
		Tabs: list.Tabs{Name: "outcome", Options: []ui.Option{
			{Label: "All"},
			{Value: string(apilog.OutcomeOK), Label: "Answered"},
			{Value: string(apilog.OutcomeRefused), Label: "Refused (4xx)"},
			{Value: string(apilog.OutcomeFailed), Label: "Failed (5xx)"},
		}},
		Filters: []list.Filter{
			text("request", "Request id"),
			{Name: "application", Label: "Application or loan", Chip: "Application ", Max: 255},
			{Name: "client", Label: "Client id", Chip: "Client ", Max: 255},
			text("key", "Idempotency key"),
			list.Partner,
			{Name: "merchant", Label: "Merchant id", Chip: "Merchant ", Max: 255},
			{Name: "code", Label: "Error", Kind: list.Choice, Options: codes, Thing: "error"},
			list.Choose("method", "Method", methods), list.Since, list.Until,
			{Name: "route", Label: "Operation", Kind: list.Hidden},
		},
		Read: func(v *list.Values) list.Source[apilog.Request] {
			filter := apilog.Filter{
				Outcome:   list.OneOf(v, "outcome", apilog.Outcomes()),
				ErrorCode: list.OneOf(v, "code", lending.Codes()),
				Method:    v.Text("method"), Route: v.Text("route"), ClientID: v.Text("client"),
				PartnerUID: v.UID("partner"), MerchantUID: v.UID("merchant"),
				ApplicationUID: v.UID("application"),
				RequestID:      v.Text("request"), IdempotencyKey: v.Text("key"),
			}
			filter.Since, filter.Until = v.Span()
			return list.Filtered(filter, f.Requests.List, f.Requests.Count)
		},
		Table: view.RequestTable,
		NoMatch: ui.EmptyProps{
			Title: "No request matches these filters",
			Text:  "Remove a filter, or look at another time. What is older than the log is gone.",
		},
		Empty: ui.EmptyProps{
			Icon: "activity", Title: "No requests yet",
			Text: "A request appears here a moment after it was answered, whatever the answer was.",
			Href: paths.Docs, Action: "Read the quick start",
		},
		File: &list.File[apilog.Request]{
			Path: paths.RequestsCSV, Name: "api-requests", Action: "api_requests.export",
			Subject: "api_request", Cells: requestCells,
			Columns: requestColumns,
		},
	}
}

// requestColumns are the titles of the file; times are in UTC.
var requestColumns = []string{
	"request_uid", "at", "request_id", "method", "path", "route", "status", "error_code",
	"error_fields", "duration_ms", "client_id", "authenticated", "partner_uid", "partner",
	"merchant_uid", "merchant", "application_uid", "idempotency_key", "replayed", "bytes_in",
	"bytes_out", "address", "user_agent",
}

func requestCells(r apilog.Request) []string {
	return []string{
		r.UID.String(), list.CellTime(r.At), r.RequestID, r.Method, r.Path, r.Route,
		strconv.Itoa(r.Status), string(r.ErrorCode), strings.Join(r.ErrorFields, " "),
		strconv.FormatFloat(float64(r.Duration.Microseconds())/1000, 'f', 3, 64), r.ClientID,
		strconv.FormatBool(r.Authenticated), page.FormatUID(r.PartnerUID), r.PartnerName,
		page.FormatUID(r.MerchantUID), r.MerchantName, page.FormatUID(r.ApplicationUID), r.IdempotencyKey,
		strconv.FormatBool(r.Replayed), strconv.FormatInt(r.BytesIn, 10),
		strconv.FormatInt(r.BytesOut, 10), r.Address, r.UserAgent,
	}
}

// request shows one request, and a command that repeats it.
func (f *Feature) request(ctx echo.Context) error {
	found, err := page.Named(ctx, f.Requests.Get)
	if err != nil {
		return err
	}
	// The command's secret and body are shell variables that the reader sets; they are not
	// stored.
	curl := []string{
		"curl -i -X " + quoted(found.Method) + " " +
			quoted(strings.TrimRight(f.PublicURL, "/")+found.Path),
		"-H " + quoted("x-service-client-id: "+found.ClientID),
		`-H "x-service-client-secret: $SECRET"`,
	}
	if found.MerchantUID != uuid.Nil {
		curl = append(curl, "-H "+quoted("x-service-merchant-uid: "+found.MerchantUID.String()))
	}
	if found.IdempotencyKey != "" {
		curl = append(curl, `-H "idempotency-key: $NEW_KEY"`)
	}
	switch {
	case found.BytesIn == 0 || found.Method == http.MethodGet:
	case strings.HasSuffix(found.Route, "request-draw"),
		strings.HasSuffix(found.Route, "cert-upload"):
		curl = append(curl, `-F "metadata=$METADATA"`)
	default:
		curl = append(curl, `-H 'content-type: application/json'`, `--data "$BODY"`)
	}
	place := requestsPlace.Under(paths.Requests, found.Method+" "+found.Path)
	return f.Show(ctx, http.StatusOK, place, view.Request(found, strings.Join(curl, " \\\n  ")))
}

// quoted quotes a text as one word of a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
