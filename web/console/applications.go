package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/applications"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// applicationRoutes lists the pages about applications and their loans.
func (c *Console) applicationRoutes() []Route {
	const support, clerk = operator.RoleSupport, operator.RoleOperator
	return []Route{
		{http.MethodGet, paths.Applications, "console.applications", support, c.applications},
		{
			http.MethodPost, paths.ApplicationsCSV, "console.applications.csv", support,
			c.exportApplications,
		},
		{
			http.MethodGet, paths.ApplicationNew, "console.application.new", clerk,
			c.newApplication,
		},
		{
			http.MethodPost, paths.ApplicationNew, "console.application.create", clerk,
			c.createApplication,
		},
		{
			http.MethodGet, paths.ApplicationChange, "console.application.change", clerk,
			c.changeForm,
		},
		{
			http.MethodPost, paths.ApplicationChange, "console.application.change.submit", clerk,
			c.changeApplication,
		},
		{http.MethodGet, paths.Application, "console.application", support, c.application},
		{http.MethodGet, paths.Document, "console.document", support, c.document},
	}
}

// applications lists applications.
func (c *Console) applications(ctx echo.Context) error {
	request := ctx.Request().Context()
	filter, shown := readApplicationFilter(ctx.QueryParams())
	owners, err := c.Applications.Owners(request, maxOptions)
	if err != nil {
		return err
	}
	page := applications.ApplicationList{
		Filter: shown, Tabs: statusTabs(shown), Active: activeApplicationFilters(shown, owners),
		Partners: partnerOptions(owners), Merchants: merchantOptions(owners),
		Export: applicationQuery(shown).Encode(),
	}
	status := http.StatusOK
	if len(shown.Faults) > 0 {
		status = http.StatusBadRequest
	} else if err := c.fillApplications(ctx, &page, filter); err != nil {
		return err
	}
	if page.Views, err = c.viewsBar(ctx, paths.Applications, applicationQuery(shown)); err != nil {
		return err
	}
	page.Frame, err = c.Frame(ctx, ui.SectionApplications, "Applications",
		ui.Crumb{Label: "Applications"})
	if err != nil {
		return err
	}
	return render(ctx, status, applications.ApplicationListPage(page))
}

// fillApplications loads one page of the list.
func (c *Console) fillApplications(
	ctx echo.Context, page *applications.ApplicationList, filter application.Filter,
) error {
	request := ctx.Request().Context()
	count := startCount(request, c, filter, c.Applications.Count)
	loaded, err := c.Applications.List(request, filter)
	if err != nil {
		return err
	}
	all, err := count.with(len(loaded.Applications), filter.Cursor.IsZero() && loaded.Next.IsZero())
	if err != nil {
		return err
	}
	page.Summary = all.in("application", "applications")
	for _, summary := range loaded.Applications {
		page.Rows = append(page.Rows, applicationRow(summary))
	}
	query := applicationQuery(page.Filter)
	if next := loaded.Next.String(); next != "" {
		page.Older = paths.With(paths.Applications, with(query, "cursor", next))
	}
	if !filter.Cursor.IsZero() {
		page.Newest = paths.With(paths.Applications, query)
	}
	return nil
}

func applicationRow(s application.Summary) ui.ApplicationRow { return ui.NewApplicationRow(s) }

// readApplicationFilter reads the filter from the address; what is wrong with
// it is said beside the field.
func readApplicationFilter(query url.Values) (application.Filter, applications.ApplicationFilter) {
	shown := applications.ApplicationFilter{
		Status: query.Get("status"), Partner: query.Get("partner"),
		Merchant: query.Get("merchant"), Search: strings.TrimSpace(query.Get("q")),
		Faults: map[string]string{},
	}
	filter := application.Filter{
		Status:      lending.ApplicationStatus(shown.Status),
		PartnerUID:  readUID(shown.Faults, "partner", shown.Partner),
		MerchantUID: readUID(shown.Faults, "merchant", shown.Merchant),
		Search:      shown.Search,
		Limit:       pageSize,
	}
	if filter.Status != "" && !slices.Contains(lending.AllApplicationStatuses(), filter.Status) {
		shown.Faults["status"] = "There is no such status; choose one above."
	}
	if application.CheckSearch(shown.Search) != nil {
		shown.Faults["q"] = "This cannot be searched for: it is too long."
	}
	var err error
	if filter.Cursor, err = postgres.ParseCursor(query.Get("cursor")); err != nil {
		shown.Faults["cursor"] = "The page's place in the list cannot be read; start from the newest."
	}
	return filter, shown
}

// applicationQuery is the inverse of readApplicationFilter.
func applicationQuery(shown applications.ApplicationFilter) url.Values {
	query := url.Values{}
	for name, text := range map[string]string{
		"status": shown.Status, "partner": shown.Partner, "merchant": shown.Merchant,
		"q": shown.Search,
	} {
		if text != "" {
			query.Set(name, text)
		}
	}
	return query
}

// statusTabs are the views of the list by status.
func statusTabs(shown applications.ApplicationFilter) []ui.Tab {
	query := applicationQuery(shown)
	tabs := []ui.Tab{{
		Label: "All", Href: paths.With(paths.Applications, with(query, "status", "")),
		Current: shown.Status == "",
	}}
	for _, status := range lending.AllApplicationStatuses() {
		tabs = append(tabs, ui.Tab{
			Label: string(status), Href: paths.With(paths.Applications, with(query, "status", string(status))),
			Current: shown.Status == string(status),
		})
	}
	return tabs
}

// activeApplicationFilters are the filters in force besides the status.
func activeApplicationFilters(
	shown applications.ApplicationFilter, owners []application.Owner,
) []ui.ActiveFilter {
	query := applicationQuery(shown)
	var active []ui.ActiveFilter
	add := func(name, label, text string, options []ui.Option) {
		if text == "" {
			return
		}
		for _, option := range options {
			if option.Value == text {
				text = option.Label
			}
		}
		active = append(active, ui.ActiveFilter{
			Label: label + " " + text, Href: paths.With(paths.Applications, with(query, name, "")),
		})
	}
	add("q", "Search", shown.Search, nil)
	add("partner", "Partner", shown.Partner, partnerOptions(owners))
	add("merchant", "Merchant", shown.Merchant, merchantOptions(owners))
	return active
}

func partnerOptions(owners []application.Owner) []ui.Option {
	options := []ui.Option{{Label: "All partners"}}
	for _, owner := range owners {
		option := ui.Option{Value: owner.PartnerUID.String(), Label: owner.PartnerName}
		if options[len(options)-1].Value != option.Value {
			options = append(options, option)
		}
	}
	return options
}

func merchantOptions(owners []application.Owner) []ui.Option {
	options := []ui.Option{{Label: "All merchants"}}
	for _, owner := range owners {
		options = append(options, ui.Option{
			Value: owner.MerchantUID.String(), Label: owner.MerchantName + ", " + owner.PartnerName,
		})
	}
	return options
}
