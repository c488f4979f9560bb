package partners

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/apilog"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/internal/search"
	view "drawbridge/views/partners"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/action"
	"drawbridge/web/console/page"
)

// overlaps are the choices for how long an old secret stays valid.
var overlaps = []ui.Option{
	{Value: "24h", Label: "24 hours"},
	{Value: "0s", Label: "Not at all: the old secret stops at once"},
	{Value: "1h", Label: "1 hour"},
	{Value: "168h", Label: "7 days"},
	{Value: "720h", Label: "30 days"},
}

// kind is a kind of clients: those of partners, or those of the lender's own systems.
type kind struct {
	view.ClientActs

	// route is the prefix of the route names, and role the lowest role that may make changes.
	route  string
	role   operator.Role
	lender bool
}

var (
	ofPartners = kind{
		ClientActs: view.ClientActs{
			Rotate: paths.ClientRotate, Rate: paths.ClientRate, Revoke: paths.ClientRevoke,
		},
		route: "console.client.", role: clerk,
	}
	ofLender = kind{
		ClientActs: view.ClientActs{
			Rotate: paths.LenderRotate, Rate: paths.LenderRate, Revoke: paths.LenderRevoke,
		},
		route: "console.lender.", role: admin, lender: true,
	}
)

// client shows one client.
func (f *Feature) client(ctx echo.Context, k kind) error {
	request := ctx.Request().Context()
	found, owner, err := f.ownedClient(ctx, k)
	if err != nil {
		return err
	}
	detail := view.ClientDetail{Owner: owner, Acts: k.ClientActs}
	newest, shown := slices.Clone(found.MerchantUIDs), found
	slices.Reverse(newest)
	shown.MerchantUIDs, detail.MerchantsPager = page.Part(ctx.Request().URL, "merchant",
		"merchants-title", newest, uuid.UUID.String)
	named, err := f.named(request, []partner.Client{shown})
	if err != nil {
		return err
	}
	detail.Client = named[0]
	detail.Traffic, err = f.traffic(request, apilog.Scope{ClientID: found.ID})
	if err != nil {
		return err
	}
	return f.Show(ctx, http.StatusOK, clientPlace(found, owner), view.ClientPage(detail))
}

// ownedClient returns the client that the path names, and its partner. Error: NOT_FOUND,
// also for a client of another kind.
func (f *Feature) ownedClient(ctx echo.Context, k kind) (partner.Client, partner.Partner, error) {
	found, err := f.Partners.Client(ctx.Request().Context(), ctx.Param("id"))
	if err == nil && found.IsLender() != k.lender {
		err = lending.NewError(lending.CodeNotFound, "there is no such client here")
	}
	if err != nil || k.lender {
		return found, partner.Partner{}, err
	}
	owner, err := f.Partners.Partner(ctx.Request().Context(), found.PartnerUID)
	return found, owner, err
}

// clientPlace returns the client's page; the end of its id tells it from other clients.
func clientPlace(client partner.Client, owner partner.Partner) page.Place {
	if client.IsLender() {
		return systemsPlace.Under(paths.Lender, client.Name)
	}
	place := placeOf(owner).Under(ownerPath(owner), "Client "+client.ID)
	place.Here = "Client …" + client.ID[max(len(client.ID)-6, 0):]
	return place
}

// clientPath returns the path of a client's page.
func clientPath(client partner.Client) string {
	return ui.If(client.IsLender(), paths.To(paths.LenderClient, client.ID),
		paths.To(paths.Client, client.ID))
}

// newClient issues credentials and shows the secret, once.
func (f *Feature) newClient() action.Spec {
	return action.Spec{
		Path: paths.ClientNew, Shown: "console.client.new", Sent: "console.client.issue", Role: clerk,
		Confirm: func(ctx echo.Context) (action.Form, error) {
			owner, err := f.owner(ctx)
			if err != nil {
				return action.Form{}, err
			}
			values, err := ctx.FormParams()
			if err != nil {
				return action.Form{}, err
			}
			fields, err := f.clientFields(ctx.Request().Context(), owner, values)
			var issued partner.Issued
			return action.Form{
				Place: placeOf(owner).Under(fields.Cancel, fields.Title), Fields: fields,
				Change: action.Change{
					Do: func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
						request := partner.NewClient{
							PartnerUID: owner.UID, Group: values.Get("kind") == "group",
						}
						for _, text := range values["merchant"] {
							uid, err := uuid.Parse(text)
							if err != nil {
								return operator.Outcome{}, lending.Invalid("merchant",
									"this merchant is not in the list; choose again")
							}
							request.MerchantUIDs = append(request.MerchantUIDs, uid)
						}
						switch count := len(request.MerchantUIDs); {
						case count == 0:
							return operator.Outcome{}, lending.Invalid("merchant",
								"nothing is ticked: tick at least one merchant")
						case count > 1 && !request.Group:
							return operator.Outcome{}, lending.Invalid("merchant",
								"a client acts for exactly one merchant unless it is a group")
						}
						issued, err = f.Partners.CreateClient(ctx, tx, request)
						return operator.Did(paths.To(paths.Client, issued.ClientID),
							operator.NewEntry("client.create", issued.ClientID, nil, map[string]any{
								"partner_uid": owner.UID, "group": issued.Group,
								"merchant_uids": issued.MerchantUIDs,
							})), err
					},
				},
				Show: func(ctx echo.Context) error {
					return f.showSecret(ctx, "Credentials issued", partner.Client{
						ID: issued.ClientID, MerchantUIDs: issued.MerchantUIDs,
					}, owner, issued.Credentials)
				},
			}, err
		},
	}
}

// clientFields ask what a new client may do.
func (f *Feature) clientFields(
	ctx context.Context, owner partner.Partner, values url.Values,
) (ui.Confirmation, error) {
	merchants, picker, err := f.PickSeveral(ctx, search.Merchant, owner.UID,
		values.Get("merchant"+ui.SoughtSuffix), values["merchant"])
	choice := ui.Control{
		Kind: ui.ControlChecks, Name: "merchant", Label: "Acts for", Pick: picker,
		Hint: "A plain client acts for exactly one merchant. A group client may act for several, " +
			"and names one in each request.",
	}
	for _, merchant := range merchants {
		merchant.Label = strings.TrimSuffix(merchant.Label, ", "+owner.Name)
		choice.Options = append(choice.Options, merchant)
	}
	choice.Values = values["merchant"]
	if len(merchants) == 1 && picker == nil {
		choice.Values = []string{merchants[0].Value}
	}
	return ui.Confirmation{
		Title: "Issue credentials", Action: paths.To(paths.ClientNew, owner.UID.String()),
		Cancel: ownerPath(owner), Wide: true,
		Submit: "Issue client id and secret", About: "For " + owner.Name,
		Effects: []string{
			"The partner's software sends the id and the secret with every request. " +
				"The secret is shown once, on the next page.",
		},
		Controls: []ui.Control{
			{
				Kind: ui.ControlSelect, Name: "kind", Label: "Kind of client", Value: values.Get("kind"),
				Options: []ui.Option{
					{Value: "plain", Label: "Plain: one merchant"},
					{Value: "group", Label: "Group: several merchants, named in each request"},
				},
			},
			choice,
		},
	}, err
}

// showSecret is the one page with a secret. Its command requests a resource that does not
// exist: wrong credentials are refused first.
func (f *Feature) showSecret(
	ctx echo.Context, title string, client partner.Client, owner partner.Partner,
	credentials partner.Credentials,
) error {
	check := []string{
		"curl -i " + strings.TrimRight(f.PublicURL, "/") + f.BasePath + "/v2/application/" +
			uuid.Nil.String(),
		"-H 'x-service-client-id: " + credentials.ClientID + "'",
		"-H \"x-service-client-secret: $SECRET\"",
	}
	intro := "For the software of " + owner.Name + "."
	place := placeOf(owner).Under(ownerPath(owner), title)
	if client.IsLender() {
		check[0] = "curl -i " + strings.TrimRight(f.PublicURL, "/") + f.BasePath +
			"/lender/v1/disbursements/1"
		intro, place = "For the lender's system "+client.Name+".", systemsPlace.Under(paths.Lender, title)
	}
	facts := []view.Fact{{Name: "Client id", Value: credentials.ClientID}}
	for i, uid := range client.MerchantUIDs {
		facts = append(facts, view.Fact{Name: "Merchant uid", Value: uid.String()})
		if i == 0 {
			check = append(check, "-H 'x-service-merchant-uid: "+uid.String()+"'")
		}
	}
	return f.Show(ctx, http.StatusOK, place, view.SecretShown(view.Secret{
		Intro: intro, Facts: facts, Value: credentials.Secret,
		Back: clientPath(client), BackLabel: "I have copied it",
		Check: strings.Join(check, " \\\n  "),
	}))
}

// userOf names the system or partner that uses a client.
func userOf(client partner.Client, owner partner.Partner) string {
	return ui.If(client.IsLender(), client.Name, owner.Name)
}

// clientForm completes the form of a change of a client, which has its own path.
func clientForm(
	client partner.Client, owner partner.Partner, act string, form action.Form,
) action.Form {
	path := clientPath(client)
	form.Place = clientPlace(client, owner).Under(path, form.Fields.Title)
	form.Fields.Action, form.Fields.Cancel = paths.To(act, client.ID), path
	form.Fields.About = client.ID + " of " + userOf(client, owner)
	return form
}

// secretsOf identifies the current secrets of a client: it differs after each rotation.
func secretsOf(client partner.Client) string {
	return fmt.Sprintf("%s %d", client.Hint, ui.Value(client.PreviousValidUntil).UnixMicro())
}

// rotateClient gives a client a new secret and shows it, once.
func (f *Feature) rotateClient(k kind) action.Spec {
	return action.Spec{
		Path: k.Rotate, Shown: k.route + "rotation", Sent: k.route + "rotate",
		Role: k.role,
		Confirm: func(ctx echo.Context) (action.Form, error) {
			found, owner, err := f.ownedClient(ctx, k)
			if err != nil {
				return action.Form{}, err
			}
			fields := ui.Confirmation{
				Title: "Rotate the secret", Submit: "Issue a new secret",
				Effects: []string{
					"The client gets a new secret, which is shown once on the next page. The old one goes " +
						"on working for the overlap, so that its user can change over without a gap.",
				},
				Controls: []ui.Control{{
					Kind: ui.ControlSelect, Name: "overlap", Label: "The old secret works on for",
					Value: overlaps[0].Value, Options: overlaps,
				}},
				Hidden: []ui.HiddenField{action.Seen(secretsOf(found))},
			}
			if found.IsRotating(f.DB.Now()) {
				fields.Risks = []string{"A rotation is under way. The secret before the present one " +
					"stops at once if you rotate again."}
			}
			chosen, seen := ctx.FormValue("overlap"), ctx.FormValue(action.SeenField)
			var rotated partner.Rotated
			return clientForm(found, owner, k.Rotate, action.Form{
				Fields: fields,
				Change: action.Change{
					Do: func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
						known := slices.ContainsFunc(overlaps,
							func(o ui.Option) bool { return o.Value == chosen })
						overlap, err := time.ParseDuration(chosen)
						if err != nil || !known {
							return operator.Outcome{},
								lending.Invalid("overlap", `"overlap" must be chosen from the list`)
						}
						now, err := f.Partners.LockClient(ctx, tx, found.ID)
						if err != nil {
							return operator.Outcome{}, err
						}
						if seen != "" && seen != secretsOf(now) {
							return operator.Outcome{}, lending.NewError(lending.CodeInvalidState,
								"Somebody rotated the secret while you were looking, and its user may not have "+
									"changed over yet. Look at it again before you decide")
						}
						rotated, err = f.Partners.RotateClient(ctx, tx, found.ID, overlap)
						return operator.Did(clientPath(found), operator.NewEntry("client.rotate", found.ID, nil,
							map[string]any{"previous_valid_until": rotated.PreviousValidUntil})), err
					},
				},
				Show: func(ctx echo.Context) error {
					return f.showSecret(ctx, "Secret rotated", found, owner, rotated.Credentials)
				},
			}), nil
		},
	}
}

// rateOf says what a form showed of a client's limit.
func rateOf(client partner.Client) string {
	return fmt.Sprintf("%d requests a second; a burst of %d", client.RatePerSecond, client.Burst)
}

// limitClient sets a client's rate limit.
func (f *Feature) limitClient(k kind) action.Spec {
	return action.Spec{
		Path: k.Rate, Shown: k.route + "limit", Sent: k.route + "limit.save",
		Role: k.role,
		Confirm: func(ctx echo.Context) (action.Form, error) {
			found, owner, err := f.ownedClient(ctx, k)
			if err != nil {
				return action.Form{}, err
			}
			// A text that is no number becomes 0, which the service refuses with the bounds.
			perSecond, _ := strconv.Atoi(strings.TrimSpace(ctx.FormValue("rate")))
			burst, _ := strconv.Atoi(strings.TrimSpace(ctx.FormValue("burst")))
			seen := ctx.FormValue(action.SeenField)
			return clientForm(found, owner, k.Rate, action.Form{
				Fields: ui.Confirmation{
					Title: "Rate limit", Submit: "Save",
					Effects: []string{
						"Faster requests are answered with 429 and Retry-After. The new limit applies " +
							"from the next request on.",
					},
					Hidden: []ui.HiddenField{action.Seen(rateOf(found))},
					Controls: []ui.Control{
						{
							Name: "rate", Label: "Requests a second", Thing: "the rate", Type: "number",
							Required: true,
							Value:    strconv.Itoa(found.RatePerSecond), Hint: "On average. The default is 50.",
						},
						{
							Name: "burst", Label: "Burst", Type: "number", Required: true,
							Value: strconv.Itoa(found.Burst),
							Hint:  "How many may come at once after a pause. The default is 100.",
						},
					},
				},
				Change: action.Change{
					Done:      "Saved. The new limit holds from the next request on.",
					Unchanged: "Nothing was changed.",
					Do: func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
						before, err := f.Partners.LockClient(ctx, tx, found.ID)
						if err != nil {
							return operator.Outcome{}, err
						}
						if now := rateOf(before); seen != "" && seen != now {
							return operator.Outcome{}, action.Stale(seen, now)
						}
						if before.RatePerSecond == perSecond && before.Burst == burst &&
							before.RevokedAt == nil {
							return operator.Outcome{Target: clientPath(found)}, nil
						}
						err = f.Partners.SetRate(ctx, tx, found.ID, perSecond, burst)
						return operator.Did(clientPath(found), operator.NewEntry("client.rate", found.ID,
							map[string]any{"rate": before.RatePerSecond, "burst": before.Burst},
							map[string]any{"rate": perSecond, "burst": burst})), err
					},
				},
			}), nil
		},
	}
}

// revokeClient revokes a client permanently.
func (f *Feature) revokeClient(k kind) action.Spec {
	return action.Spec{
		Path: k.Revoke, Shown: k.route + "revocation", Sent: k.route + "revoke",
		Role: k.role,
		Confirm: func(ctx echo.Context) (action.Form, error) {
			found, owner, err := f.ownedClient(ctx, k)
			if err != nil {
				return action.Form{}, err
			}
			fields := ui.Confirmation{
				Title: "Revoke this client", Submit: "Revoke for good", Danger: true,
				Effects: []string{
					"Every request with its id is refused with 401 from now on, also during an overlap of " +
						"its secrets. Nothing brings it back; its user would get another client.",
				},
			}
			if found.LastUsedAt != nil && f.DB.Now().Sub(*found.LastUsedAt) < day {
				fields.Risks = []string{
					"It was used within the last 24 hours: " + userOf(found, owner) + " still needs it.",
				}
			}
			return clientForm(found, owner, k.Revoke, action.Form{
				Fields: fields,
				Change: action.Change{
					Done: "Revoked. Requests with this client are refused from now on.",
					Do: func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
						outcome := operator.Outcome{Target: clientPath(found)}
						before, err := f.Partners.LockClient(ctx, tx, found.ID)
						if err != nil || before.RevokedAt != nil {
							return outcome, err
						}
						if err := f.Partners.RevokeClient(ctx, tx, found.ID); err != nil {
							return outcome, err
						}
						return operator.Did(outcome.Target, operator.NewEntry("client.revoke", found.ID,
							map[string]any{"revoked": false}, map[string]any{"revoked": true})), nil
					},
				},
			}), nil
		},
	}
}
