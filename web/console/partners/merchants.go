package partners

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/apilog"
	"drawbridge/internal/application"
	"drawbridge/internal/operator"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	view "drawbridge/views/partners"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/action"
	"drawbridge/web/console/page"
)

// latestApplications is how many applications the page of a merchant shows.
const latestApplications = 10

// ownedMerchant returns the merchant that the path names, and its partner. Error: NOT_FOUND.
func (f *Feature) ownedMerchant(ctx echo.Context) (view.MerchantDetail, error) {
	merchant, err := page.Named(ctx, f.Partners.Merchant)
	if err != nil {
		return view.MerchantDetail{}, err
	}
	owner, err := f.Partners.Partner(ctx.Request().Context(), merchant.PartnerUID)
	return view.MerchantDetail{Merchant: merchant, Owner: owner}, err
}

// merchant shows one merchant.
func (f *Feature) merchant(ctx echo.Context) error {
	request := ctx.Request().Context()
	detail, err := f.ownedMerchant(ctx)
	if err != nil {
		return err
	}
	if detail.Traffic, err = f.traffic(request, apilog.Scope{MerchantUID: detail.UID}); err != nil {
		return err
	}
	clients, err := f.Partners.ClientsOf(request, detail.UID)
	if err != nil {
		return err
	}
	if detail.Clients, err = f.named(request, clients); err != nil {
		return err
	}
	detail.Applications, _, err = f.Applications.List(request,
		application.Filter{MerchantUID: detail.UID}, postgres.Paging{Limit: latestApplications})
	if err != nil {
		return err
	}
	return f.Show(ctx, http.StatusOK,
		placeOf(detail.Owner).Under(ownerPath(detail.Owner), detail.Name), view.Merchant(detail))
}

func ownerPath(p partner.Partner) string { return paths.To(paths.Partner, p.UID.String()) }

// newMerchant adds a merchant to a partner.
func (f *Feature) newMerchant() action.Spec {
	return action.Spec{
		Path: paths.MerchantNew, Shown: "console.merchant.new", Sent: "console.merchant.create",
		Role: clerk,
		Confirm: func(ctx echo.Context) (action.Form, error) {
			owner, err := f.owner(ctx)
			path, name := ownerPath(owner), ctx.FormValue("name")
			return action.Form{
				Place: placeOf(owner).Under(path, "New merchant"),
				Fields: ui.Confirmation{
					Title: "New merchant", Action: paths.To(paths.MerchantNew, owner.UID.String()),
					Cancel: path, Submit: "Create merchant", About: "For " + owner.Name,
					Effects: []string{
						"Subscriptions that cover all merchants of " + owner.Name + " cover this one at " +
							"once. Clients do not: a new one is issued for it.",
					},
					Controls: []ui.Control{
						nameControl("The business that loans pay. Borrowers read it in e-mails.", ""),
					},
				},
				Change: action.Change{
					Done: "Created. No client acts for it yet: issue one on its partner's page.",
					Do: func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
						made, err := f.Partners.CreateMerchant(ctx, tx, owner.UID, name)
						return operator.Did(paths.To(paths.Merchant, made.UID.String()),
							operator.NewEntry("merchant.create", made.UID.String(), nil,
								map[string]any{"name": made.Name, "partner_uid": owner.UID})), err
					},
				},
			}, err
		},
	}
}

// renameMerchant gives a merchant another name.
func (f *Feature) renameMerchant() action.Spec {
	return action.Spec{
		Path: paths.MerchantRename, Shown: "console.merchant.name", Sent: "console.merchant.rename",
		Role: clerk,
		Confirm: func(ctx echo.Context) (action.Form, error) {
			found, err := f.ownedMerchant(ctx)
			path := paths.To(paths.Merchant, found.UID.String())
			return renaming{
				kind: "merchant", path: path, pattern: paths.MerchantRename, uid: found.UID,
				place: placeOf(found.Owner).Under(ownerPath(found.Owner), found.Name),
				now:   found.Name, about: found.Name + " of " + found.Owner.Name,
				says: "E-mails from now on carry the new name; those written before keep the old.",
				rename: func(ctx context.Context, tx *postgres.Tx, name string) (string, error) {
					before, err := f.Partners.RenameMerchant(ctx, tx, found.UID, name)
					return before.Name, err
				},
			}.form(ctx), err
		},
	}
}
