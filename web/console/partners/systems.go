package partners

import (
	"context"
	"strings"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/operator"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	view "drawbridge/views/partners"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/action"
	"drawbridge/web/console/list"
	"drawbridge/web/console/page"
)

var systemsPlace = page.Place{Section: ui.SectionSystems, Title: "Lender API"}

// systems lists the clients of the lender's own systems.
func (f *Feature) systems() list.Spec[partner.Client] {
	return list.Spec[partner.Client]{
		Name: "console.lender", Path: paths.Lender, Role: admin, Place: systemsPlace,
		Intro: "The lender's own systems that call the lender API, and what each may do.",
		One:   "system", Many: "systems", Order: "Newest first",
		Read: func(*list.Values) list.Source[partner.Client] {
			return list.Source[partner.Client]{
				Load: list.Keyset(func(
					ctx context.Context, page postgres.Paging,
				) ([]partner.Client, postgres.Cursor, error) {
					return f.Partners.ListClients(ctx, partner.ClientFilter{Lender: true}, page)
				}),
				Count: f.Partners.CountSystems,
			}
		},
		Table: func(rows []partner.Client) ui.TableProps[partner.Client] {
			return view.SystemTable(rows, f.DB.Now())
		},
		Buttons: view.NewSystem(), EmptyBody: view.NoSystems(),
	}
}

// scopeLabels say what each scope allows.
var scopeLabels = map[partner.Scope]string{
	partner.ScopeRead:         "see applications and disbursements",
	partner.ScopeApplications: "move applications, change amounts and terms",
	partner.ScopeDocuments:    "record the loan documents, download certificates",
	partner.ScopeTasks:        "add, complete and cancel tasks",
	partner.ScopeFunding:      "read the work list, and say that money moved",
}

// newSystem issues credentials to one of the lender's systems and shows the secret, once.
func (f *Feature) newSystem() action.Spec {
	return action.Spec{
		Path: paths.LenderNew, Shown: "console.lender.new", Sent: "console.lender.issue", Role: admin,
		Confirm: func(ctx echo.Context) (action.Form, error) {
			values, err := ctx.FormParams()
			var scopes []ui.Option
			for _, scope := range partner.Scopes() {
				scopes = append(scopes, ui.Option{
					Value: string(scope), Label: string(scope) + ": " + scopeLabels[scope],
				})
			}
			fields, issued := ui.Confirmation{
				Title: "Issue credentials for a system", Action: paths.LenderNew, Cancel: paths.Lender,
				Wide: true, Submit: "Issue client id and secret",
				Effects: []string{
					"The system sends the id and the secret with every request to the lender API. The " +
						"secret is shown once, on the next page.",
				},
				Controls: []ui.Control{
					{
						Name: "name", Label: "Name", MaxLength: 100, Required: true, Autocomplete: "off",
						Autofocus: true, Hint: "What the audit log calls it, such as payments.",
					},
					{
						Kind: ui.ControlChecks, Name: "scope", Label: "Scope", Options: scopes,
						Hint: "As little as it needs. Who can say that money moved decides what partners " +
							"are told.",
					},
					{
						Name: "from", Label: "Calls from", MaxLength: 1000, Autocomplete: "off",
						Hint: "Networks such as 203.0.113.0/24, with spaces between them. Empty for anywhere.",
					},
				},
			}, partner.Issued{}
			return action.Form{
				Place: systemsPlace.Under(paths.Lender, fields.Title), Fields: fields,
				Change: action.Change{
					Do: func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
						var err error
						issued, err = f.Partners.CreateLenderClient(ctx, tx, partner.NewLenderClient{
							Name: values.Get("name"), Scopes: values["scope"],
							From: strings.Fields(values.Get("from")),
						})
						return operator.Did(paths.To(paths.LenderClient, issued.ClientID),
							operator.NewEntry("client.create", issued.ClientID, nil, map[string]any{
								"lender": true, "name": issued.Name, "scopes": issued.Scopes,
								"from": issued.From,
							})), err
					},
				},
				Show: func(ctx echo.Context) error {
					return f.showSecret(ctx, "Credentials issued",
						partner.Client{ID: issued.ClientID, System: issued.System}, partner.Partner{},
						issued.Credentials)
				},
			}, err
		},
	}
}
