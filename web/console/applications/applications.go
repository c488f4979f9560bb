// Package applications is the console's pages about applications, their loans and the
// products that loans are taken under.
package applications

import (
	"drawbridge/internal/application"
	"drawbridge/internal/catalog"
	"drawbridge/internal/loan"
	"drawbridge/internal/operator"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/list"
	"drawbridge/web/console/page"
)

// Feature serves the pages.
type Feature struct {
	*list.Engine
	Applications *application.Service
	Loans        *loan.Service
	Products     *catalog.Service
}

// Routes lists the pages and changes.
func (f *Feature) Routes() []page.Route {
	routes := list.Routes(f.Engine, f.loans())
	routes = append(routes,
		page.Get(paths.Products, "console.products", operator.RoleSupport, f.products))
	return append(routes, f.Actions(f.newProduct(), f.switchProduct())...)
}

var productsPlace = page.Place{Section: ui.SectionProducts, Title: "Products"}
