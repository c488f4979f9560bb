package console

import (
	"context"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/apilog"
	"drawbridge/internal/application"
	"drawbridge/internal/operator"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/views/partners"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/action"
)

// latestApplications is how many applications the page of a merchant shows.
const latestApplications = 10

func merchantRow(m partner.Merchant) partners.MerchantRow {
	return partners.MerchantRow{UID: m.UID.String(), Name: m.Name, Created: m.CreatedAt}
}

// newMerchant asks for a new merchant's name, and adds it to its partner.
func (c *Console) newMerchant(ctx echo.Context) error {
	uid, err := pathUID(ctx)
	if err != nil {
		return err
	}
	owner, err := c.Partners.Partner(ctx.Request().Context(), uid)
	if err != nil {
		return err
	}
	path := paths.To(paths.Partner, uid.String())
	form := ui.AskForm{
		Title: "New merchant", Action: path + "/merchants/new", Cancel: path,
		Submit: "Create merchant", About: "For " + owner.Name,
		Says: []string{
			"Subscriptions that cover all merchants of " + owner.Name + " cover this one at once. " +
				"Clients do not: a new one is issued for it.",
		},
		Controls: []ui.Control{
			nameControl("The business that loans pay. Borrowers read it in e-mails.", ""),
		},
	}
	at := under(partnersSpot, owner.Name, path)
	if !isSent(ctx) {
		return c.showAsk(ctx, http.StatusOK, at, form)
	}
	name := ctx.FormValue("name")
	return c.answerAsk(ctx, at, action.Typed(ctx, form), commitment{
		done: "Created. No client acts for it yet: issue one on its partner's page.",
		do: func(request context.Context, tx *postgres.Tx) (operator.Entry, string, error) {
			made, err := c.Partners.CreateMerchant(request, tx, uid, name)
			return operator.Entry{
				Action: "merchant.create", SubjectKind: "merchant", Subject: made.UID.String(),
				After: map[string]any{"name": made.Name, "partner_uid": uid},
			}, paths.To(paths.Merchant, made.UID.String()), err
		},
	})
}

// merchant shows one merchant.
func (c *Console) merchant(ctx echo.Context) error {
	uid, err := pathUID(ctx)
	if err != nil {
		return err
	}
	request := ctx.Request().Context()
	found, owner, err := c.merchantWithPartner(request, uid)
	if err != nil {
		return err
	}
	page := partners.MerchantPage{
		UID: uid.String(), Name: found.Name, Created: found.CreatedAt,
		PartnerUID: owner.UID.String(), PartnerName: owner.Name,
	}
	if page.Traffic, err = c.traffic(request, apilog.Scope{MerchantUID: uid}); err != nil {
		return err
	}
	clients, err := c.Partners.ClientsOf(request, uid)
	if err != nil {
		return err
	}
	if page.Clients, err = c.clientRows(request, clients); err != nil {
		return err
	}
	latest, err := c.Applications.List(request, application.Filter{
		MerchantUID: uid, Limit: latestApplications,
	})
	if err != nil {
		return err
	}
	page.Applications = latest.Applications
	page.Frame, err = c.Frame(ctx, ui.SectionPartners, found.Name,
		ui.Crumb{Label: "Partners", Href: paths.Partners},
		ui.Crumb{Label: owner.Name, Href: paths.To(paths.Partner, owner.UID.String())},
		ui.Crumb{Label: found.Name})
	if err != nil {
		return err
	}
	page.Notice = c.TakeNotice(ctx)
	return render(ctx, http.StatusOK, partners.MerchantDetailPage(page))
}

func (c *Console) merchantWithPartner(
	ctx context.Context, uid uuid.UUID,
) (partner.Merchant, partner.Partner, error) {
	found, err := c.Partners.Merchant(ctx, uid)
	if err != nil {
		return partner.Merchant{}, partner.Partner{}, err
	}
	owner, err := c.Partners.Partner(ctx, found.PartnerUID)
	return found, owner, err
}

// renameMerchant asks for a merchant's new name, and gives it.
func (c *Console) renameMerchant(ctx echo.Context) error {
	uid, err := pathUID(ctx)
	if err != nil {
		return err
	}
	found, owner, err := c.merchantWithPartner(ctx.Request().Context(), uid)
	if err != nil {
		return err
	}
	path := paths.To(paths.Merchant, uid.String())
	form := ui.AskForm{
		Title: "Rename merchant", Action: path + "/rename", Cancel: path, Submit: "Rename",
		About:    found.Name + " of " + owner.Name,
		Says:     []string{"E-mails from now on carry the new name; those written before keep the old."},
		Controls: []ui.Control{nameControl("", found.Name)},
	}
	at := under(under(partnersSpot, owner.Name, paths.To(paths.Partner, owner.UID.String())), found.Name, path)
	if !isSent(ctx) {
		return c.showAsk(ctx, http.StatusOK, at, form)
	}
	name := ctx.FormValue("name")
	return c.answerAsk(ctx, at, action.Typed(ctx, form), commitment{
		done: "Renamed.", unchanged: "That is its name already.",
		do: func(request context.Context, tx *postgres.Tx) (operator.Entry, string, error) {
			before, err := c.Partners.RenameMerchant(request, tx, uid, name)
			if err != nil || before.Name == strings.TrimSpace(name) {
				return operator.Entry{}, path, err
			}
			return operator.Entry{
				Action: "merchant.rename", SubjectKind: "merchant", Subject: uid.String(),
				Before: map[string]any{"name": before.Name},
				After:  map[string]any{"name": strings.TrimSpace(name)},
			}, path, nil
		},
	})
}
