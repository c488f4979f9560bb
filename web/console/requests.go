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
	"drawbridge/views"
)

// requestRoutes lists the pages of the log of the partners' requests.
func (c *Console) requestRoutes() []Route {
	const support = operator.RoleSupport
	return []Route{
		{http.MethodGet, views.PathRequests, "console.requests", support, c.requests},
		{http.MethodGet, views.PathRequest, "console.request", support, c.request},
		{http.MethodPost, views.PathRequestsCSV, "console.requests.csv", support, c.requestsCSV},
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
	page := views.RequestList{
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
	if page.Views, err = c.viewsBar(ctx, views.PathRequests, requestQuery(shown)); err != nil {
		return err
	}
	page.Frame, err = c.Frame(ctx, views.SectionRequests, "API requests",
		views.Crumb{Label: "API requests"})
	if err != nil {
		return err
	}
	return render(ctx, status, views.RequestListPage(page))
}

func (c *Console) fillRequests(
	ctx echo.Context, page *views.RequestList, filter apilog.Filter,
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
		page.Older = views.RequestsPath(with(query, "cursor", loaded.Next.String()))
	}
	if !filter.Cursor.IsZero() {
		page.Newest = views.RequestsPath(query)
	}
	return nil
}

func requestRow(r apilog.Request) views.RequestRow {
	return views.RequestRow{
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
	page := views.RequestPageProps{Request: requestRow(found), Curl: c.curlOf(found)}
	page.Frame, err = c.Frame(ctx, views.SectionRequests, found.Method+" "+found.Path,
		views.Crumb{Label: "API requests", Href: views.PathRequests},
		views.Crumb{Label: found.Method + " " + found.Path})
	if err != nil {
		return err
	}
	return render(ctx, http.StatusOK, views.RequestDetailPage(page))
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
func (who reader) readRequestFilter(query url.Values) (apilog.Filter, views.RequestFilter) {
	shown := views.RequestFilter{
		Values: map[string]string{}, Local: map[string]string{}, Faults: map[string]string{},
	}
	for _, name := range views.RequestFilterNames() {
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
func requestQuery(shown views.RequestFilter) url.Values {
	query := url.Values{}
	for name, text := range shown.Values {
		query.Set(name, text)
	}
	return query
}

// outcomeTabs are the views of the log by outcome.
func outcomeTabs(shown views.RequestFilter) []views.Tab {
	query := requestQuery(shown)
	words := map[apilog.Outcome]string{
		apilog.OutcomeOK: "Answered", apilog.OutcomeRefused: "Refused (4xx)",
		apilog.OutcomeFailed: "Failed (5xx)",
	}
	current := shown.Values["outcome"]
	tabs := []views.Tab{{
		Label: "All", Href: views.RequestsPath(with(query, "outcome", "")), Current: current == "",
	}}
	for _, outcome := range apilog.Outcomes() {
		tabs = append(tabs, views.Tab{
			Label: words[outcome], Href: views.RequestsPath(with(query, "outcome", string(outcome))),
			Current: current == string(outcome),
		})
	}
	return tabs
}

// activeRequestFilters are the filters in force besides the outcome.
func activeRequestFilters(
	shown views.RequestFilter, partners map[string]string,
) []views.ActiveFilter {
	query := requestQuery(shown)
	labels := map[string]string{
		"code": "Error", "method": "Method", "route": "Operation", "partner": "Partner",
		"merchant": "Merchant", "client": "Client", "application": "Application",
		"request": "Request id", "key": "Idempotency key", "since": "From", "until": "To",
	}
	var active []views.ActiveFilter
	for _, name := range views.RequestFilterNames() {
		text := shown.Values[name]
		if text == "" || labels[name] == "" {
			continue
		}
		if named := partners[text]; name == "partner" && named != "" {
			text = named
		}
		active = append(active, views.ActiveFilter{
			Label: labels[name] + " " + text, Href: views.RequestsPath(with(query, name, "")),
		})
	}
	return active
}

func codeOptions() []views.Option {
	options := []views.Option{{Label: "Any, or none"}}
	for _, code := range lending.Codes() {
		options = append(options, views.Option{Value: string(code), Label: string(code)})
	}
	return options
}

func methodOptions() []views.Option {
	options := []views.Option{{Label: "Any"}}
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut} {
		options = append(options, views.Option{Value: method, Label: method})
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
