package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/apilog"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	partnersview "drawbridge/views/partners"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// requestRoutes lists the pages of the log of the partners' requests.
func (c *Console) requestRoutes() []Route {
	const support = operator.RoleSupport
	return []Route{
		{http.MethodGet, paths.Requests, "console.requests", support, c.requests},
		{http.MethodGet, paths.Request, "console.request", support, c.request},
		{http.MethodPost, paths.RequestsCSV, "console.requests.csv", support, c.requestsCSV},
	}
}

// requests lists what partners asked of the API.
func (c *Console) requests(ctx echo.Context) error {
	request := ctx.Request().Context()
	filter, shown := c.reader(ctx).readRequestFilter(ctx.QueryParams())
	owners, err := c.Applications.Owners(request, maxOptions)
	if err != nil {
		return err
	}
	page := partnersview.RequestList{
		Filter: shown, Tabs: outcomeTabs(shown),
		Active:   activeRequestFilters(shown, partnerNames(owners)),
		Partners: partnerOptions(owners), Codes: codeOptions(), Methods: methodOptions(),
		Export: requestQuery(shown).Encode(),
	}
	status := http.StatusOK
	if len(shown.Faults) > 0 {
		status = http.StatusBadRequest
	} else if err := c.fillRequests(ctx, &page, filter); err != nil {
		return err
	}
	kept, err := c.Retention.Settings(request)
	if err != nil {
		return err
	}
	page.KeptDays = kept.APIRequestDays
	if page.Views, err = c.viewsBar(ctx, paths.Requests, requestQuery(shown)); err != nil {
		return err
	}
	page.Frame, err = c.frame(ctx, ui.SectionRequests, "API requests",
		ui.Crumb{Label: "API requests"})
	if err != nil {
		return err
	}
	return render(ctx, status, partnersview.RequestListPage(page))
}

func (c *Console) fillRequests(
	ctx echo.Context, page *partnersview.RequestList, filter apilog.Filter,
) error {
	request := ctx.Request().Context()
	count := startCount(request, c, filter, c.Requests.Count)
	loaded, err := c.Requests.List(request, filter)
	if err != nil {
		return err
	}
	all, err := count.with(len(loaded.Requests), filter.Cursor.IsZero() && loaded.Next.IsZero())
	if err != nil {
		return err
	}
	page.Summary = all.in("request", "requests")
	for _, found := range loaded.Requests {
		page.Rows = append(page.Rows, requestRow(found))
	}
	query := requestQuery(page.Filter)
	if !loaded.Next.IsZero() {
		page.Older = paths.With(paths.Requests, with(query, "cursor", loaded.Next.String()))
	}
	if !filter.Cursor.IsZero() {
		page.Newest = paths.With(paths.Requests, query)
	}
	return nil
}

func requestRow(r apilog.Request) partnersview.RequestRow {
	return partnersview.RequestRow{
		UID: r.UID.String(), RequestID: r.RequestID, At: r.At, Method: r.Method, Path: r.Path,
		Route: r.Route, Status: r.Status, Code: string(r.ErrorCode), Fields: r.ErrorFields,
		Client: r.ClientID, Authenticated: r.Authenticated,
		Partner: r.PartnerName, PartnerUID: r.PartnerUID.String(),
		Merchant: r.MerchantName, MerchantUID: r.MerchantUID.String(),
		Application: known(r.ApplicationUID), Key: r.IdempotencyKey, Replayed: r.Replayed,
		Duration: r.Duration, BytesIn: r.BytesIn, BytesOut: r.BytesOut, Address: r.Address,
		UserAgent: r.UserAgent,
	}
}

// known writes a uid, and the nil one as nothing.
func known(uid uuid.UUID) string {
	if uid == uuid.Nil {
		return ""
	}
	return uid.String()
}

// request shows one request.
func (c *Console) request(ctx echo.Context) error {
	uid, err := pathUID(ctx)
	if err != nil {
		return err
	}
	found, err := c.Requests.Get(ctx.Request().Context(), uid)
	if err != nil {
		return err
	}
	page := partnersview.RequestPageProps{Request: requestRow(found), Curl: c.curlOf(found)}
	page.Frame, err = c.frame(ctx, ui.SectionRequests, found.Method+" "+found.Path,
		ui.Crumb{Label: "API requests", Href: paths.Requests},
		ui.Crumb{Label: found.Method + " " + found.Path})
	if err != nil {
		return err
	}
	return render(ctx, http.StatusOK, partnersview.RequestDetailPage(page))
}

// curlOf writes the request as a command. Secret and body are variables of the
// shell, which the reader sets; they are not kept.
func (c *Console) curlOf(r apilog.Request) string {
	lines := []string{
		"curl -i -X " + quoted(r.Method) + " " + quoted(strings.TrimRight(c.PublicURL, "/")+r.Path),
		"-H " + quoted("x-service-client-id: "+r.ClientID),
		`-H "x-service-client-secret: $SECRET"`,
	}
	if r.MerchantUID != uuid.Nil {
		lines = append(lines, "-H "+quoted("x-service-merchant-uid: "+r.MerchantUID.String()))
	}
	if r.IdempotencyKey != "" {
		lines = append(lines, `-H "idempotency-key: $NEW_KEY"`)
	}
	switch {
	case r.BytesIn == 0 || r.Method == http.MethodGet:
	case strings.HasSuffix(r.Route, "request-draw") || strings.HasSuffix(r.Route, "cert-upload"):
		lines = append(lines, `-F "metadata=$METADATA"`)
	default:
		lines = append(lines, `-H 'content-type: application/json'`, `--data "$BODY"`)
	}
	return strings.Join(lines, " \\\n  ")
}

// quoted is one word of a shell, whatever stands in it.
func quoted(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// readRequestFilter reads the filter from the address. Wrong values are left out
// and named in the view's faults.
func (who reader) readRequestFilter(query url.Values) (apilog.Filter, partnersview.RequestFilter) {
	shown := partnersview.RequestFilter{
		Values: map[string]string{}, Local: map[string]string{}, Faults: map[string]string{},
	}
	for _, name := range partnersview.RequestFilterNames() {
		if text := strings.TrimSpace(query.Get(name)); text != "" {
			shown.Values[name] = text
		}
	}
	get := func(name string) string { return shown.Values[name] }
	filter := apilog.Filter{
		Outcome: apilog.Outcome(get("outcome")), ErrorCode: lending.Code(get("code")),
		Method: get("method"), Route: get("route"), ClientID: get("client"),
		PartnerUID:     readUID(shown.Faults, "partner", get("partner")),
		MerchantUID:    readUID(shown.Faults, "merchant", get("merchant")),
		ApplicationUID: readUID(shown.Faults, "application", get("application")),
		RequestID:      get("request"), IdempotencyKey: get("key"), Limit: pageSize,
	}
	if filter.Outcome != "" && !slices.Contains(apilog.Outcomes(), filter.Outcome) {
		shown.Faults["outcome"] = "There is no such outcome; choose one above."
	}
	if filter.ErrorCode != "" && !slices.Contains(lending.Codes(), filter.ErrorCode) {
		shown.Faults["code"] = "There is no such error; choose one of the list."
	}
	values, local := shown.Values, shown.Local
	filter.Since, values["since"], local["since"] = who.moment(shown.Faults, "since", query)
	filter.Until, values["until"], local["until"] = who.moment(shown.Faults, "until", query)
	for _, name := range []string{"since", "until"} {
		if shown.Values[name] == "" {
			delete(shown.Values, name)
		}
	}
	if !filter.Until.IsZero() && !filter.Since.Before(filter.Until) {
		shown.Faults["until"] = "The end must come after the beginning."
	}
	var err error
	if filter.Cursor, err = postgres.ParseCursor(query.Get("cursor")); err != nil {
		shown.Faults["cursor"] = "The page's place in the list cannot be read; start from the newest."
	}
	return filter, shown
}

// requestQuery is the inverse of readRequestFilter.
func requestQuery(shown partnersview.RequestFilter) url.Values {
	query := url.Values{}
	for name, text := range shown.Values {
		query.Set(name, text)
	}
	return query
}

// outcomeTabs are the views of the log by outcome.
func outcomeTabs(shown partnersview.RequestFilter) []ui.Tab {
	query := requestQuery(shown)
	words := map[apilog.Outcome]string{
		apilog.OutcomeOK: "Answered", apilog.OutcomeRefused: "Refused (4xx)",
		apilog.OutcomeFailed: "Failed (5xx)",
	}
	current := shown.Values["outcome"]
	tabs := []ui.Tab{{
		Label: "All", Href: paths.With(paths.Requests, with(query, "outcome", "")),
		Current: current == "",
	}}
	for _, outcome := range apilog.Outcomes() {
		tabs = append(tabs, ui.Tab{
			Label: words[outcome], Href: paths.With(paths.Requests, with(query, "outcome", string(outcome))),
			Current: current == string(outcome),
		})
	}
	return tabs
}

// activeRequestFilters are the filters in force besides the outcome.
func activeRequestFilters(
	shown partnersview.RequestFilter, partners map[string]string,
) []ui.ActiveFilter {
	query := requestQuery(shown)
	labels := map[string]string{
		"code": "Error", "method": "Method", "route": "Operation", "partner": "Partner",
		"merchant": "Merchant", "client": "Client", "application": "Application",
		"request": "Request id", "key": "Idempotency key", "since": "From", "until": "To",
	}
	var active []ui.ActiveFilter
	for _, name := range partnersview.RequestFilterNames() {
		text := shown.Values[name]
		if text == "" || labels[name] == "" {
			continue
		}
		if named := partners[text]; name == "partner" && named != "" {
			text = named
		}
		active = append(active, ui.ActiveFilter{
			Label: labels[name] + " " + text, Href: paths.With(paths.Requests, with(query, name, "")),
		})
	}
	return active
}

func codeOptions() []ui.Option {
	options := []ui.Option{{Label: "Any, or none"}}
	for _, code := range lending.Codes() {
		options = append(options, ui.Option{Value: string(code), Label: string(code)})
	}
	return options
}

func methodOptions() []ui.Option {
	options := []ui.Option{{Label: "Any"}}
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut} {
		options = append(options, ui.Option{Value: method, Label: method})
	}
	return options
}

// requestsCSV sends the log under a filter as a file.
func (c *Console) requestsCSV(ctx echo.Context) error {
	query, err := exported(ctx)
	if err != nil {
		return err
	}
	filter, shown := c.reader(ctx).readRequestFilter(query)
	if err := unlessFaulty(shown.Faults); err != nil {
		return err
	}
	filter.Limit = exportBatch
	return c.sendCSV(ctx, csvFile{
		Name: "api-requests", Action: "api_requests.export", SubjectKind: "api_request",
		Filter: requestQuery(shown), Columns: requestColumns,
		Next: byPages(func(from postgres.Cursor) ([]apilog.Request, postgres.Cursor, error) {
			filter.Cursor = from
			page, err := c.Requests.List(ctx.Request().Context(), filter)
			return page.Requests, page.Next, err
		}, requestCells),
	})
}
