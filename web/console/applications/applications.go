// Package applications is the console's pages about applications, their loans and the
// products of loans.
package applications

import (
	"drawbridge/internal/application"
	"drawbridge/internal/catalog"
	"drawbridge/internal/document"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/operator"
	"drawbridge/internal/partner"
	"drawbridge/internal/retention"
	"drawbridge/internal/webhook"
	"drawbridge/views/applications"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/list"
	"drawbridge/web/console/page"
)

// Feature serves the pages.
type Feature struct {
	*list.Engine
	Applications *application.Service
	Documents    *document.Store
	Loans        *loan.Service
	Partners     *partner.Service
	Products     *catalog.Service
	Retention    *retention.Service
	Webhooks     *webhook.Services
}

// Routes lists the pages and changes.
func (f *Feature) Routes() []page.Route {
	const support = operator.RoleSupport
	routes := list.Routes(f.Engine, f.applications())
	routes = append(routes, list.Routes(f.Engine, f.loans())...)
	routes = append(routes, list.Routes(f.Engine, f.desk())...)
	routes = append(routes,
		page.Get(paths.Application, "console.application", support, f.application),
		page.Get(paths.Document, "console.document", support, f.document),
		page.Get(paths.Products, "console.products", support, f.products))
	return append(routes, f.Actions(
		f.newApplication(), f.change(), f.legalHold(), f.newProduct(), f.switchProduct(),
		f.changeOverdue())...)
}

var (
	applicationsPlace = page.Place{Section: ui.SectionApplications, Title: "Applications"}
	productsPlace     = page.Place{Section: ui.SectionProducts, Title: "Products"}
)

// applications lists applications.
func (f *Feature) applications() list.Spec[application.Summary] {
	tabs := list.Options("All", lending.AllApplicationStatuses(), nil)
	return list.Spec[application.Summary]{
		Name: "console.applications", Path: paths.Applications, Role: operator.RoleSupport,
		Place: applicationsPlace,
		Intro: "Applications of all partners. Each leads to its loan, documents and timeline.",
		One:   "application", Many: "applications", Order: "Newest first",
		Tabs: list.Tabs{Name: "status", Options: tabs},
		Filters: []list.Filter{
			{
				Name: "q", Label: "Id, reference, e-mail or disbursement", Chip: "Search ", Max: 254,
			},
			list.Partner, list.Merchant, list.Range.Called("Created in "),
			list.Since.Called("Created from "), list.Until.Called("Created before "),
		},
		Read:  f.readApplications,
		Table: ui.ApplicationTable,
		NoMatch: ui.EmptyProps{
			Title: "No application matches these filters",
			Text: "Remove a filter. An id, reference, e-mail address or disbursement number must be " +
				"whole.",
		},
		Empty: ui.EmptyProps{
			Icon: "folder-open", Title: "No applications yet",
			Text: "An application appears here as soon as a partner creates it through the API.",
			Href: paths.Docs, Action: "Read the quick start",
		},
		Buttons: applications.New(), Saved: true,
		File: &list.File[application.Summary]{
			Path: paths.ApplicationsCSV, Name: "applications", Action: "application.export",
			Subject: "application",
			Columns: []string{
				"application_id", "created_at", "status", "external_reference", "borrower",
				"borrower_email", "partner_uid", "partner", "merchant_uid", "merchant",
				"requested_amount", "loan_amount", "drawn_amount",
			},
			Cells: func(s application.Summary) []string {
				return []string{
					s.UID.String(), list.CellTime(s.CreatedAt), string(s.Status), ui.Value(s.Reference),
					s.Borrower(), s.Email, s.PartnerUID.String(), s.PartnerName, s.MerchantUID.String(),
					s.MerchantName, s.RequestedAmount.String(), list.CellMoney(s.LoanAmount),
					list.CellMoney(s.Drawn),
				}
			},
		},
	}
}

func (f *Feature) readApplications(v *list.Values) list.Source[application.Summary] {
	filter := application.Filter{
		Status:     list.OneOf(v, "status", lending.AllApplicationStatuses()),
		PartnerUID: v.UID("partner"), MerchantUID: v.UID("merchant"), Search: v.Text("q"),
	}
	filter.Since, filter.Until = v.Span()
	if application.CheckSearch(filter.Search) != nil {
		v.Wrong["q"] = "This cannot be searched for: it is too long."
	}
	return list.Filtered(filter, f.Applications.List, f.Applications.Count)
}
