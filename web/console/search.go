package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/operator"
	"drawbridge/internal/search"
	"drawbridge/views/operations"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// searchRoutes lists the search and its page.
func (c *Console) searchRoutes() []Route {
	return []Route{
		{http.MethodGet, paths.Search, "console.search", operator.RoleSupport, c.search},
	}
}

// search leads to the one thing that the text names, or lists what it may be.
// Under htmx it answers the list alone, which the palette shows while typing.
func (c *Console) search(ctx echo.Context) error {
	sought := strings.TrimSpace(ctx.QueryParam("q"))
	request := ctx.Request()
	hits, err := c.Search.Find(request.Context(), sought)
	if err != nil {
		return err
	}
	page := operations.SearchPage{Query: sought, Groups: searchGroups(hits)}
	if isFragment(request) {
		page.Pages = operations.PagesNamed(sought, string(currentUser(ctx).Role))
		return render(ctx, http.StatusOK, operations.SearchResults(page))
	}
	if len(hits) == 1 {
		return ctx.Redirect(http.StatusSeeOther, hitPath(hits[0]))
	}
	page.Frame, err = c.frame(ctx, "", "Search", ui.Crumb{Label: "Search"})
	if err != nil {
		return err
	}
	page.Frame.Query = sought
	return render(ctx, http.StatusOK, operations.SearchResultsPage(page))
}

// searchTitles head the groups of hits.
var searchTitles = map[search.Kind]string{
	search.Application: "Applications", search.Disbursement: "Draws",
	search.Delivery: "Deliveries", search.Event: "Events", search.Email: "E-mails",
	search.Subscription: "Subscriptions", search.Partner: "Partners",
	search.Merchant: "Merchants", search.Client: "API clients", search.Request: "API requests",
}

// searchIcons mark the kinds of hits.
var searchIcons = map[search.Kind]string{
	search.Application: "folder-open", search.Disbursement: "banknote", search.Delivery: "send",
	search.Event: "zap", search.Email: "mail", search.Subscription: "webhook",
	search.Partner: "building-2", search.Merchant: "store", search.Client: "lock",
	search.Request: "list-checks",
}

func searchGroups(hits []search.Hit) []operations.HitGroup {
	var groups []operations.HitGroup
	for _, hit := range hits {
		title := searchTitles[hit.Kind]
		if len(groups) == 0 || groups[len(groups)-1].Title != title {
			groups = append(groups, operations.HitGroup{Title: title, Icon: searchIcons[hit.Kind]})
		}
		group := &groups[len(groups)-1]
		detail := hit.Detail
		if hit.Kind == search.Merchant {
			detail = "Merchant of " + detail
		}
		group.Hits = append(group.Hits, operations.HitView{
			Href: hitPath(hit), Title: hit.Title, Detail: detail, ID: hit.ID,
		})
	}
	return groups
}

// hitPath is the page of what was found.
func hitPath(hit search.Hit) string {
	switch hit.Kind {
	case search.Application:
		return paths.To(paths.Application, hit.ID)
	case search.Disbursement:
		return fmt.Sprintf("%s#draw-%d", paths.To(paths.Application, hit.ID), hit.Number)
	case search.Delivery:
		return paths.To(paths.Delivery, hit.ID)
	case search.Event:
		return paths.To(paths.Event, hit.ID)
	case search.Email:
		return paths.To(paths.Email, hit.ID)
	case search.Subscription:
		return paths.To(paths.Subscription, hit.ID)
	case search.Partner:
		return paths.To(paths.Partner, hit.ID)
	case search.Merchant:
		return paths.To(paths.Merchant, hit.ID)
	case search.Client:
		return paths.To(paths.Client, hit.ID)
	case search.Request:
		return paths.To(paths.Request, hit.ID)
	}
	return paths.Search + "?" + url.Values{"q": {hit.ID}}.Encode()
}
