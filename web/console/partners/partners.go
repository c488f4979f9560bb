// Package partners is the console's pages about partners, their merchants and clients, and
// the log of their API requests.
package partners

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/apilog"
	"drawbridge/internal/application"
	"drawbridge/internal/operator"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/internal/retention"
	"drawbridge/internal/statement"
	"drawbridge/internal/webhook"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
	view "drawbridge/views/partners"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/action"
	"drawbridge/web/console/list"
	"drawbridge/web/console/page"
)

const (
	support = operator.RoleSupport
	clerk   = operator.RoleOperator
	admin   = operator.RoleAdmin

	// shown is how many merchants, clients and subscriptions the page of a partner
	// shows.
	shown = 100
	// maxName bounds the prefix of a name that is searched for, in bytes.
	maxName = 800

	day = 24 * time.Hour
)

// Feature serves the pages.
type Feature struct {
	*list.Engine

	Partners     *partner.Service
	Applications *application.Service
	Webhooks     *webhook.Services
	// Requests is the log of the partners' API requests, Retention says how long it is kept.
	Requests  *apilog.Service
	Retention *retention.Service
	// Statements are the daily statements of merchants.
	Statements *statement.Service
	// BasePath precedes the API's paths, for example /api.
	BasePath string
}

// Routes lists the pages and changes.
func (f *Feature) Routes() []page.Route {
	routes := slices.Concat(list.Routes(f.Engine, f.partners()),
		list.Routes(f.Engine, f.requests()), list.Routes(f.Engine, f.systems()),
		list.Routes(f.Engine, f.statements()))
	routes = append(routes,
		page.Get(paths.Partner, "console.partner", support, f.partner),
		page.Get(paths.Merchant, "console.merchant", support, f.merchant),
		page.Get(paths.Statement, "console.statement", support, f.statement),
		page.Get(paths.StatementFile, "console.statement.file", support, f.statementFile),
		page.Get(paths.Client, "console.client", support,
			func(ctx echo.Context) error { return f.client(ctx, ofPartners) }),
		page.Get(paths.LenderClient, "console.lenderClient", admin,
			func(ctx echo.Context) error { return f.client(ctx, ofLender) }),
		page.Get(paths.Request, "console.request", support, f.request),
	)
	return append(routes, f.Actions(
		f.newPartner(), f.renamePartner(), f.contactPartner(),
		f.newMerchant(), f.renameMerchant(), f.newClient(),
		f.rotateClient(ofPartners), f.limitClient(ofPartners), f.revokeClient(ofPartners),
		f.newSystem(), f.rotateClient(ofLender), f.limitClient(ofLender), f.revokeClient(ofLender),
	)...)
}

var listPlace = page.Place{Section: ui.SectionPartners, Title: "Partners"}

// placeOf returns the place of a partner's page.
func placeOf(p partner.Partner) page.Place { return listPlace.Under(paths.Partners, p.Name) }

// partners lists partners.
func (f *Feature) partners() list.Spec[partner.Summary] {
	return list.Spec[partner.Summary]{
		Name: "console.partners", Path: paths.Partners, Role: support, Place: listPlace,
		Intro: "Organisations that integrate, with their merchants, credentials and subscriptions.",
		One:   "partner", Many: "partners", Order: "Newest first",
		Filters: []list.Filter{{Name: "name", Label: "Name begins with", Max: 200}},
		Search:  true,
		Read: func(v *list.Values) list.Source[partner.Summary] {
			filter := partner.Filter{Name: v.Text("name")}
			if len(filter.Name) > maxName {
				v.Wrong["name"] = "This cannot be searched for: it is too long."
			}
			return list.Filtered(filter, f.Partners.Summaries, f.Partners.CountPartners)
		},
		Table: view.Table, Buttons: view.NewPartner(), EmptyBody: view.NoPartners(),
		NoMatch: ui.EmptyProps{
			Title: "No partner's name begins like that", Action: "Show all partners",
			Text: "Upper and lower case do not matter. Try fewer letters.", Href: paths.Partners,
		},
	}
}

// partner shows one partner.
func (f *Feature) partner(ctx echo.Context) error {
	request := ctx.Request().Context()
	found, err := f.owner(ctx)
	if err != nil {
		return err
	}
	detail := view.PartnerDetail{Partner: found}
	merchants, more, err := f.Partners.ListMerchants(request,
		partner.MerchantFilter{PartnerUID: found.UID}, postgres.Paging{Limit: shown})
	if err != nil {
		return err
	}
	detail.Merchants, detail.MoreMerchants = merchants, !more.IsZero()
	clients, more, err := f.Partners.ListClients(request,
		partner.ClientFilter{PartnerUID: found.UID}, postgres.Paging{Limit: shown})
	if err != nil {
		return err
	}
	detail.MoreClients = !more.IsZero()
	if detail.Clients, err = f.named(request, clients); err != nil {
		return err
	}
	detail.Subscriptions, _, err = f.Webhooks.Subscriptions.List(request,
		subscription.Filter{PartnerUID: found.UID}, postgres.Paging{Limit: shown})
	if err != nil {
		return err
	}
	if detail.Arrived, err = f.hasArrived(request, found.UID); err != nil {
		return err
	}
	detail.Traffic, err = f.traffic(request, apilog.Scope{PartnerUID: found.UID})
	if err != nil {
		return err
	}
	return f.Show(ctx, http.StatusOK, placeOf(found), view.Detail(detail))
}

// hasArrived reports whether anything was ever delivered to a partner's endpoints. The
// health of subscriptions has that within minutes; newer deliveries are searched only for
// as long as a list counts, since all deliveries of a large partner may have failed.
func (f *Feature) hasArrived(ctx context.Context, partnerUID uuid.UUID) (bool, error) {
	known, err := f.Webhooks.Health.HasSucceeded(ctx, partnerUID)
	if known || err != nil {
		return known, err
	}
	arrived, err := f.CountSoon(ctx, 0, func(ctx context.Context) (int, error) {
		return f.Webhooks.Deliveries.Count(ctx, delivery.Filter{
			PartnerUID: partnerUID, State: delivery.StateDelivered,
		}, 1)
	})
	return arrived > 0, err
}

// owner returns the partner that the path names. Error: NOT_FOUND.
func (f *Feature) owner(ctx echo.Context) (partner.Partner, error) {
	return page.Named(ctx, f.Partners.Partner)
}

// named adds to clients the names of their merchants.
func (f *Feature) named(ctx context.Context, clients []partner.Client) ([]view.Client, error) {
	var uids []uuid.UUID
	for _, client := range clients {
		uids = append(uids, client.MerchantUIDs...)
	}
	names, err := f.Partners.MerchantNames(ctx, uids)
	if err != nil {
		return nil, err
	}
	now, found := f.DB.Now(), make([]view.Client, 0, len(clients))
	for _, client := range clients {
		named := view.Client{Client: client, Rotating: client.IsRotating(now)}
		for _, uid := range client.MerchantUIDs {
			named.Names = append(named.Names, names[uid])
		}
		found = append(found, named)
	}
	return found, nil
}

// traffic sums up the requests of the last day and of the last 30 days.
func (f *Feature) traffic(ctx context.Context, scope apilog.Scope) ([]view.Traffic, error) {
	lastDay, err := f.Requests.Traffic(ctx, scope, f.DB.Now().Add(-day))
	if err != nil {
		return nil, err
	}
	lastMonth, err := f.Requests.Traffic(ctx, scope, f.DB.Now().Add(-30*day))
	return []view.Traffic{
		{Traffic: lastDay, Span: "last 24 hours"}, {Traffic: lastMonth, Span: "last 30 days"},
	}, err
}

func nameControl(hint, value string) ui.Control {
	return ui.Control{
		Name: "name", Label: "Name", Hint: hint, Value: value, MaxLength: 200, Required: true,
		Autocomplete: "off", Autofocus: true,
	}
}

// newPartner adds a partner, and its first merchant if one is named.
func (f *Feature) newPartner() action.Spec {
	return action.Spec{
		Path: paths.PartnerNew, Shown: "console.partner.new", Sent: "console.partner.create",
		Role: clerk,
		Confirm: func(ctx echo.Context) (action.Form, error) {
			name, merchant := ctx.FormValue("name"), strings.TrimSpace(ctx.FormValue("merchant"))
			contact := ctx.FormValue("contact")
			return action.Form{
				Place: listPlace.Under(paths.Partners, "New partner"),
				Fields: ui.Confirmation{
					Title: "New partner", Action: paths.PartnerNew, Cancel: paths.Partners,
					Submit: "Create partner",
					Controls: []ui.Control{
						nameControl("The organisation, as people here call it.", ""),
						{
							Name: "merchant", Label: "First merchant", MaxLength: 200, Autocomplete: "off",
							Hint: "The business that loans pay. Leave it empty to add merchants later.",
						},
						contactControl(""),
					},
				},
				Change: action.Change{
					Done: "Created. What is left to do for its first webhook stands below.",
					Do: func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
						made, err := f.Partners.CreatePartner(ctx, tx, name, contact)
						if err != nil {
							return operator.Outcome{}, err
						}
						after := map[string]any{"name": made.Name, "contact": made.Contact}
						if merchant != "" {
							added, err := f.Partners.CreateMerchant(ctx, tx, made.UID, merchant)
							if err != nil {
								return operator.Outcome{}, action.Renamed(err, "name", "merchant")
							}
							after["merchant_uid"], after["merchant"] = added.UID, added.Name
						}
						return operator.Did(paths.To(paths.Partner, made.UID.String()),
							operator.NewEntry("partner.create", made.UID.String(), nil, after)), nil
					},
				},
			}, nil
		},
	}
}

// renamePartner changes a partner's name.
func (f *Feature) renamePartner() action.Spec {
	return action.Spec{
		Path: paths.PartnerRename, Shown: "console.partner.name", Sent: "console.partner.rename",
		Role: clerk,
		Confirm: func(ctx echo.Context) (action.Form, error) {
			found, err := f.owner(ctx)
			return renaming{
				kind: "partner", path: ownerPath(found), pattern: paths.PartnerRename, uid: found.UID,
				place: placeOf(found), now: found.Name, about: found.Name,
				says: "Its id, merchants, credentials and subscriptions stay as they are.",
				rename: func(ctx context.Context, tx *postgres.Tx, name string) (string, error) {
					before, _, err := f.Partners.UpdatePartner(ctx, tx, found.UID,
						partner.Change{Name: &name})
					return before.Name, err
				},
			}.form(ctx), err
		},
	}
}

func contactControl(value string) ui.Control {
	return ui.Control{
		Name: "contact", Label: "Contact", Type: "email", Value: value, MaxLength: 254,
		Autocomplete: "off",
		Hint: "The address that is told of deliveries that used up their attempts, at most once an " +
			"hour for each subscription. Leave it empty to tell nobody.",
	}
}

// contactPartner sets who at a partner is told about deliveries that failed for good.
func (f *Feature) contactPartner() action.Spec {
	return action.Spec{
		Path: paths.PartnerContact, Shown: "console.partner.contact",
		Sent: "console.partner.contact.save", Role: clerk,
		Confirm: func(ctx echo.Context) (action.Form, error) {
			found, err := f.owner(ctx)
			path, contact := paths.To(paths.Partner, found.UID.String()), ctx.FormValue("contact")
			return action.Form{
				Place: placeOf(found).Under(path, "Contact"),
				Fields: ui.Confirmation{
					Title: "Contact", Action: paths.To(paths.PartnerContact, found.UID.String()),
					Cancel: path, Submit: "Save", About: found.Name,
					Controls: []ui.Control{contactControl(postgres.OrZero(found.Contact))},
				},
				Change: action.Change{
					Done: "Saved.", Unchanged: "That is the contact already.",
					Do: func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
						before, after, err := f.Partners.UpdatePartner(ctx, tx, found.UID,
							partner.Change{Contact: &contact})
						if err != nil || postgres.OrZero(before.Contact) == postgres.OrZero(after.Contact) {
							return operator.Outcome{Target: path}, err
						}
						return operator.Did(path, operator.NewEntry("partner.update", found.UID.String(),
							map[string]any{"contact": before.Contact}, map[string]any{"contact": after.Contact})), nil
					},
				},
			}, err
		},
	}
}

// renaming is the change of a partner's or merchant's name.
type renaming struct {
	// kind is the kind of thing, path the path of its page, pattern the route of the form.
	kind, path, pattern string
	uid                 uuid.UUID
	place               page.Place
	// now is the current name, about describes the owner, says states the consequences.
	now, about, says string
	// rename returns the former name.
	rename func(ctx context.Context, tx *postgres.Tx, name string) (string, error)
}

// form asks for the name.
func (r renaming) form(ctx echo.Context) action.Form {
	title, name := "Rename "+r.kind, ctx.FormValue("name")
	return action.Form{
		Place: r.place.Under(r.path, title),
		Fields: ui.Confirmation{
			Title: title, Action: paths.To(r.pattern, r.uid.String()), Cancel: r.path,
			Submit: "Rename", About: r.about, Effects: []string{r.says},
			Controls: []ui.Control{nameControl("", r.now)},
		},
		Change: action.Change{
			Done: "Renamed.", Unchanged: "That is its name already.",
			Do: func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
				before, err := r.rename(ctx, tx, name)
				name := strings.TrimSpace(name)
				if err != nil || before == name {
					return operator.Outcome{Target: r.path}, err
				}
				return operator.Did(r.path, operator.NewEntry(r.kind+".rename", r.uid.String(),
					map[string]any{"name": before}, map[string]any{"name": name})), nil
			},
		},
	}
}
