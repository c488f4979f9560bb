package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/apilog"
	"drawbridge/internal/operator"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
	"drawbridge/views/partners"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// shownOfPartner is how many merchants, clients and subscriptions the page of a
// partner shows.
const shownOfPartner = 100

// The spans for which traffic is summed up.
const (
	trafficDay   = 24 * time.Hour
	trafficMonth = 30 * 24 * time.Hour
)

// partnerRoutes lists the pages about partners, their merchants and clients.
func (c *Console) partnerRoutes() []Route {
	const support, clerk = operator.RoleSupport, operator.RoleOperator
	get, post := http.MethodGet, http.MethodPost
	return []Route{
		{get, paths.Partners, "console.partners", support, c.partners},
		{get, paths.PartnerNew, "console.partner.new", clerk, c.newPartner},
		{post, paths.PartnerNew, "console.partner.create", clerk, c.createPartner},
		{get, paths.Partner, "console.partner", support, c.partner},
		{get, paths.PartnerRename, "console.partner.name", clerk, c.renamePartner},
		{post, paths.PartnerRename, "console.partner.rename", clerk, c.renamePartner},
		{get, paths.MerchantNew, "console.merchant.new", clerk, c.newMerchant},
		{post, paths.MerchantNew, "console.merchant.create", clerk, c.newMerchant},
		{get, paths.Merchant, "console.merchant", support, c.merchant},
		{get, paths.MerchantRename, "console.merchant.name", clerk, c.renameMerchant},
		{post, paths.MerchantRename, "console.merchant.rename", clerk, c.renameMerchant},
		{get, paths.ClientNew, "console.client.new", clerk, c.newClient},
		{post, paths.ClientNew, "console.client.issue", clerk, c.issueClient},
		{get, paths.Client, "console.client", support, c.client},
		{get, paths.ClientRotate, "console.client.rotation", clerk, c.rotation},
		{post, paths.ClientRotate, "console.client.rotate", clerk, c.rotateClient},
		{get, paths.ClientRate, "console.client.limit", clerk, c.clientRate},
		{post, paths.ClientRate, "console.client.limit.save", clerk, c.clientRate},
		{get, paths.ClientRevoke, "console.client.revocation", clerk, c.revokeClient},
		{post, paths.ClientRevoke, "console.client.revoke", clerk, c.revokeClient},
	}
}

// isSent tells whether a form came back filled in.
func isSent(ctx echo.Context) bool { return ctx.Request().Method == http.MethodPost }

// partners lists partners.
func (c *Console) partners(ctx echo.Context) error {
	name := strings.TrimSpace(ctx.QueryParam("name"))
	page, status := partners.PartnerList{Search: name}, http.StatusOK
	filter := partner.Filter{Name: name, Limit: pageSize}
	var err error
	if filter.Cursor, err = postgres.ParseCursor(ctx.QueryParam("cursor")); err != nil {
		page.Fault = "The page's spot in the list cannot be read; start from the newest."
	}
	if len(name) > 800 {
		page.Fault, page.Search = "This cannot be searched for: it is too long.", ""
	}
	if page.Fault != "" {
		status = http.StatusBadRequest
	} else if err := c.fillPartners(ctx.Request().Context(), &page, filter); err != nil {
		return err
	}
	page.Frame, err = c.frame(ctx, ui.SectionPartners, "Partners", ui.Crumb{Label: "Partners"})
	if err != nil {
		return err
	}
	page.Notice = c.takeNotice(ctx)
	return render(ctx, status, partners.PartnerListPage(page))
}

func (c *Console) fillPartners(
	ctx context.Context, page *partners.PartnerList, filter partner.Filter,
) error {
	count := startCount(ctx, c, filter, c.Partners.CountPartners)
	rows, next, err := c.Partners.Summaries(ctx, filter)
	if err != nil {
		return err
	}
	all, err := count.with(len(rows), filter.Cursor.IsZero() && next.IsZero())
	if err != nil {
		return err
	}
	page.Summary = all.in("partner", "partners")
	for _, row := range rows {
		page.Rows = append(page.Rows, partners.PartnerRow{
			UID: row.UID.String(), Name: row.Name, Merchants: row.Merchants, Clients: row.Clients,
			Subscriptions: row.Subscriptions, Created: row.CreatedAt,
		})
	}
	query := url.Values{}
	if page.Search != "" {
		query.Set("name", page.Search)
	}
	if !next.IsZero() {
		page.Older = paths.With(paths.Partners, with(query, "cursor", next.String()))
	}
	if !filter.Cursor.IsZero() {
		page.Newest = paths.With(paths.Partners, query)
	}
	return nil
}

var partnersSpot = spot{
	section: ui.SectionPartners,
	crumbs:  []ui.Crumb{{Label: "Partners", Href: paths.Partners}},
}

// under is a spot one page further down.
func (p spot) under(label, href string) spot {
	p.crumbs = append(slices.Clone(p.crumbs), ui.Crumb{Label: label, Href: href})
	return p
}

func nameControl(hint, value string) ui.Control {
	return ui.Control{
		Name: "name", Label: "Name", Hint: hint, Value: value, MaxLength: 200, Required: true,
		Autocomplete: "off", Autofocus: true,
	}
}

func newPartnerForm() ui.AskForm {
	return ui.AskForm{
		Title: "New partner", Action: paths.PartnerNew, Cancel: paths.Partners,
		Submit: "Create partner",
		Controls: []ui.Control{
			nameControl("The organisation, as people here call it.", ""),
			{
				Name: "merchant", Label: "First merchant", MaxLength: 200, Autocomplete: "off",
				Hint: "The business that loans pay. Leave it empty to add merchants later.",
			},
		},
	}
}

func (c *Console) newPartner(ctx echo.Context) error {
	return c.showAsk(ctx, http.StatusOK, partnersSpot, newPartnerForm())
}

// createPartner adds a partner, and its first merchant if one is named.
func (c *Console) createPartner(ctx echo.Context) error {
	form := typed(ctx, newPartnerForm())
	name, merchant := ctx.FormValue("name"), strings.TrimSpace(ctx.FormValue("merchant"))
	return c.answerAsk(ctx, partnersSpot, form, commitment{
		done: "Created. Issue credentials next, then a subscription for its events.",
		do: func(request context.Context, tx *postgres.Tx) (operator.Entry, string, error) {
			made, err := c.Partners.CreatePartner(request, tx, name)
			if err != nil {
				return operator.Entry{}, "", err
			}
			after := map[string]any{"name": made.Name}
			if merchant != "" {
				added, err := c.Partners.CreateMerchant(request, tx, made.UID, merchant)
				if err != nil {
					return operator.Entry{}, "", renamed(err, "name", "merchant")
				}
				after["merchant_uid"], after["merchant"] = added.UID, added.Name
			}
			return operator.Entry{
				Action: "partner.create", SubjectKind: "partner", Subject: made.UID.String(),
				After: after,
			}, paths.To(paths.Partner, made.UID.String()), nil
		},
	})
}

// partner shows one partner.
func (c *Console) partner(ctx echo.Context) error {
	uid, err := pathUID(ctx)
	if err != nil {
		return err
	}
	request := ctx.Request().Context()
	found, err := c.Partners.Partner(request, uid)
	if err != nil {
		return err
	}
	page := partners.PartnerPage{UID: uid.String(), Name: found.Name, Created: found.CreatedAt}
	if err := c.fillPartner(request, &page, uid); err != nil {
		return err
	}
	page.Frame, err = c.frame(ctx, ui.SectionPartners, found.Name,
		ui.Crumb{Label: "Partners", Href: paths.Partners}, ui.Crumb{Label: found.Name})
	if err != nil {
		return err
	}
	page.Notice = c.takeNotice(ctx)
	return render(ctx, http.StatusOK, partners.PartnerDetailPage(page))
}

func (c *Console) fillPartner(
	ctx context.Context, page *partners.PartnerPage, uid uuid.UUID,
) error {
	merchants, more, err := c.Partners.ListMerchants(ctx, partner.MerchantFilter{
		PartnerUID: uid, Limit: shownOfPartner,
	})
	if err != nil {
		return err
	}
	page.MoreMerchants = !more.IsZero()
	for _, merchant := range merchants {
		page.Merchants = append(page.Merchants, merchantRow(merchant))
	}
	clients, more, err := c.Partners.ListClients(ctx, partner.ClientFilter{
		PartnerUID: uid, Limit: shownOfPartner,
	})
	if err != nil {
		return err
	}
	page.MoreClients = !more.IsZero()
	if page.Clients, err = c.clientRows(ctx, clients); err != nil {
		return err
	}
	subscriptions, _, err := c.Webhooks.Subscriptions(ctx, webhook.SubscriptionFilter{
		PartnerUID: uid, Limit: shownOfPartner,
	})
	if err != nil {
		return err
	}
	for _, subscription := range subscriptions {
		page.Subscriptions = append(page.Subscriptions, partners.SubscriptionLine{
			UID: subscription.UID.String(), URL: subscription.URL, State: string(subscription.State),
			Events: subscription.Events,
		})
	}
	page.Traffic, err = c.traffic(ctx, apilog.Scope{PartnerUID: uid})
	return err
}

// traffic sums requests up over the last day and the last 30.
func (c *Console) traffic(ctx context.Context, scope apilog.Scope) ([]partners.TrafficView, error) {
	var spans []partners.TrafficView
	for _, span := range []struct {
		word string
		back time.Duration
	}{{"last 24 hours", trafficDay}, {"last 30 days", trafficMonth}} {
		traffic, err := c.Requests.Traffic(ctx, scope, c.DB.Now().Add(-span.back))
		if err != nil {
			return nil, err
		}
		spans = append(spans, partners.TrafficView{
			Span: span.word, Requests: traffic.Requests, Refused: traffic.Refused,
			Failed: traffic.Failed,
		})
	}
	return spans, nil
}

// renamePartner asks for a partner's new name, and gives it.
func (c *Console) renamePartner(ctx echo.Context) error {
	uid, err := pathUID(ctx)
	if err != nil {
		return err
	}
	found, err := c.Partners.Partner(ctx.Request().Context(), uid)
	if err != nil {
		return err
	}
	path := paths.To(paths.Partner, uid.String())
	form := ui.AskForm{
		Title: "Rename partner", Action: path + "/rename", Cancel: path, Submit: "Rename",
		About: found.Name,
		Says: []string{
			"Its id, merchants, credentials and subscriptions stay as they are.",
		},
		Controls: []ui.Control{nameControl("", found.Name)},
	}
	at := partnersSpot.under(found.Name, path)
	if !isSent(ctx) {
		return c.showAsk(ctx, http.StatusOK, at, form)
	}
	name := ctx.FormValue("name")
	return c.answerAsk(ctx, at, typed(ctx, form), commitment{
		done: "Renamed.", unchanged: "That is its name already.",
		do: func(request context.Context, tx *postgres.Tx) (operator.Entry, string, error) {
			before, err := c.Partners.RenamePartner(request, tx, uid, name)
			if err != nil || before.Name == strings.TrimSpace(name) {
				return operator.Entry{}, path, err
			}
			return operator.Entry{
				Action: "partner.rename", SubjectKind: "partner", Subject: uid.String(),
				Before: map[string]any{"name": before.Name},
				After:  map[string]any{"name": strings.TrimSpace(name)},
			}, path, nil
		},
	})
}
