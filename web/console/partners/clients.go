package partners

import (
	"context"
	"net/http"
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
	view "drawbridge/views/partners"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/action"
	"drawbridge/web/console/page"
)

// overlaps are for how long an old secret may go on working.
var overlaps = []ui.Option{
	{Value: "24h", Label: "24 hours"},
	{Value: "0s", Label: "Not at all: the old secret stops at once"},
	{Value: "1h", Label: "1 hour"},
	{Value: "168h", Label: "7 days"},
	{Value: "720h", Label: "30 days"},
}

// client shows one client.
func (f *Feature) client(ctx echo.Context) error {
	request := ctx.Request().Context()
	found, owner, err := f.ownedClient(ctx)
	if err != nil {
		return err
	}
	named, err := f.named(request, []partner.Client{found})
	if err != nil {
		return err
	}
	traffic, err := f.traffic(request, apilog.Scope{ClientID: found.ID})
	if err != nil {
		return err
	}
	place := clientPlace(found, owner)
	return f.Show(ctx, http.StatusOK, place,
		view.ClientPage(view.ClientDetail{Client: named[0], Owner: owner, Traffic: traffic}))
}

// ownedClient is the client that the path names, and its partner. Error: NOT_FOUND.
func (f *Feature) ownedClient(ctx echo.Context) (partner.Client, partner.Partner, error) {
	found, err := f.Partners.Client(ctx.Request().Context(), ctx.Param("id"))
	if err != nil {
		return partner.Client{}, partner.Partner{}, err
	}
	owner, err := f.Partners.Partner(ctx.Request().Context(), found.PartnerUID)
	return found, owner, err
}

// clientPlace is the client's page; the end of its id tells it from others.
func clientPlace(client partner.Client, owner partner.Partner) page.Place {
	place := placeOf(owner).Under(ownerPath(owner), "Client "+client.ID)
	place.Here = "Client …" + client.ID[max(len(client.ID)-6, 0):]
	return place
}

// newClient issues credentials and shows the secret, this once.
func (f *Feature) newClient() action.Spec {
	return action.Spec{
		Path: paths.ClientNew, Shown: "console.client.new", Sent: "console.client.issue", Role: clerk,
		Ask: func(ctx echo.Context) (action.Form, error) {
			owner, err := f.owner(ctx)
			if err != nil {
				return action.Form{}, err
			}
			fields, err := f.clientFields(ctx.Request().Context(), owner)
			if err != nil {
				return action.Form{}, err
			}
			values, err := ctx.FormParams()
			var issued partner.Issued
			return action.Form{
				Place: placeOf(owner).Under(fields.Cancel, fields.Title), Fields: fields,
				Change: action.Change{
					Do: func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
						request, err := readClient(owner.UID, values["merchant"], values.Get("kind") == "group")
						if err != nil {
							return operator.Outcome{}, err
						}
						issued, err = f.Partners.CreateClient(ctx, tx, request)
						return operator.Did(paths.To(paths.Client, issued.ClientID), operator.Entry{
							Action: "client.create", SubjectKind: "client", Subject: issued.ClientID,
							After: map[string]any{
								"partner_uid": owner.UID, "group": issued.Group,
								"merchant_uids": issued.MerchantUIDs,
							},
						}), err
					},
				},
				Show: func(ctx echo.Context) error {
					return f.showSecret(ctx, owner, "Credentials issued", issued.Credentials,
						issued.MerchantUIDs)
				},
			}, err
		},
	}
}

// clientFields ask what a new client may do.
func (f *Feature) clientFields(ctx context.Context, owner partner.Partner) (ui.AskForm, error) {
	merchants, _, err := f.Partners.ListMerchants(ctx,
		partner.MerchantFilter{PartnerUID: owner.UID, Limit: shown})
	choice := ui.Control{
		Kind: ui.ControlChecks, Name: "merchant", Label: "Acts for",
		Hint: "A plain client acts for exactly one merchant. A group client may act for several, " +
			"and names one in each request.",
	}
	for _, merchant := range merchants {
		choice.Options = append(choice.Options,
			ui.Option{Value: merchant.UID.String(), Label: merchant.Name})
	}
	if len(merchants) == 1 {
		choice.Values = []string{merchants[0].UID.String()}
	}
	return ui.AskForm{
		Title: "Issue credentials", Action: ownerPath(owner) + "/clients/new",
		Cancel: ownerPath(owner), Wide: true,
		Submit: "Issue client id and secret", About: "For " + owner.Name,
		Says: []string{
			"The partner's software sends the id and the secret with every request. " +
				"The secret is shown once, on the next page.",
		},
		Controls: []ui.Control{
			{
				Kind: ui.ControlSelect, Name: "kind", Label: "Kind of client",
				Options: []ui.Option{
					{Value: "plain", Label: "Plain: one merchant"},
					{Value: "group", Label: "Group: several merchants, named in each request"},
				},
			},
			choice,
		},
	}, err
}

func readClient(owner uuid.UUID, merchants []string, group bool) (partner.NewClient, error) {
	request := partner.NewClient{PartnerUID: owner, Group: group}
	for _, text := range merchants {
		uid, err := uuid.Parse(text)
		if err != nil {
			return request, lending.Invalid("merchant", `"merchant" is none of the list; choose again`)
		}
		request.MerchantUIDs = append(request.MerchantUIDs, uid)
	}
	switch {
	case len(request.MerchantUIDs) == 0:
		return request, lending.Invalid("merchant", `"merchant" is empty: tick at least one merchant`)
	case len(request.MerchantUIDs) > 1 && !group:
		return request, lending.Invalid("merchant",
			`"merchant" must be exactly one merchant unless the client is a group`)
	}
	return request, nil
}

// showSecret is the one page that has a secret, with a command that asks the API for
// what does not exist: credentials that are wrong are refused before that.
func (f *Feature) showSecret(
	ctx echo.Context, owner partner.Partner, title string, credentials partner.Credentials,
	merchants []uuid.UUID,
) error {
	check := []string{
		"curl -i " + strings.TrimRight(f.PublicURL, "/") + f.BasePath + "/v2/application/" +
			uuid.Nil.String(),
		"-H 'x-service-client-id: " + credentials.ClientID + "'",
		"-H \"x-service-client-secret: $SECRET\"",
	}
	facts := []view.Fact{{Name: "Client id", Value: credentials.ClientID}}
	for i, uid := range merchants {
		facts = append(facts, view.Fact{Name: "Merchant uid", Value: uid.String()})
		if i == 0 {
			check = append(check, "-H 'x-service-merchant-uid: "+uid.String()+"'")
		}
	}
	return f.Show(ctx, http.StatusOK, placeOf(owner).Under(ownerPath(owner), title),
		view.SecretShown(view.Secret{
			Intro: "For the software of " + owner.Name + ".", Facts: facts, Value: credentials.Secret,
			Back: paths.To(paths.Client, credentials.ClientID), BackLabel: "I have copied it",
			Check: strings.Join(check, " \\\n  "),
		}))
}

// clientForm is a form below the page of a client.
func clientForm(
	client partner.Client, owner partner.Partner, act string, form action.Form,
) action.Form {
	path := paths.To(paths.Client, client.ID)
	form.Place = clientPlace(client, owner).Under(path, form.Fields.Title)
	form.Fields.Action, form.Fields.Cancel = path+"/"+act, path
	form.Fields.About = client.ID + " of " + owner.Name
	return form
}

// rotateClient gives a client a new secret and shows it, this once.
func (f *Feature) rotateClient() action.Spec {
	return action.Spec{
		Path: paths.ClientRotate, Shown: "console.client.rotation", Sent: "console.client.rotate",
		Role: clerk,
		Ask: func(ctx echo.Context) (action.Form, error) {
			found, owner, err := f.ownedClient(ctx)
			if err != nil {
				return action.Form{}, err
			}
			fields := ui.AskForm{
				Title: "Rotate the secret", Submit: "Issue a new secret",
				Says: []string{
					"The client gets a new secret, which is shown once on the next page. The old one goes " +
						"on working for the overlap, so that the partner can change over without a gap.",
				},
				Controls: []ui.Control{{
					Kind: ui.ControlSelect, Name: "overlap", Label: "The old secret works on for",
					Value: overlaps[0].Value, Options: overlaps,
				}},
			}
			if until := found.PreviousValidUntil; until != nil && f.DB.Now().Before(*until) {
				fields.Risks = []string{"A rotation is under way. The secret before the present one " +
					"stops at once if you rotate again."}
			}
			chosen := ctx.FormValue("overlap")
			var rotated partner.Rotated
			return clientForm(found, owner, "rotate", action.Form{
				Fields: fields,
				Change: action.Change{
					Do: func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
						known := slices.ContainsFunc(overlaps,
							func(o ui.Option) bool { return o.Value == chosen })
						overlap, err := time.ParseDuration(chosen)
						if err != nil || !known {
							return operator.Outcome{},
								lending.Invalid("overlap", `"overlap" must be one of the list`)
						}
						rotated, err = f.Partners.RotateClient(ctx, tx, found.ID, overlap)
						return operator.Did(paths.To(paths.Client, found.ID), operator.Entry{
							Action: "client.rotate", SubjectKind: "client", Subject: found.ID,
							After: map[string]any{"previous_valid_until": rotated.PreviousValidUntil},
						}), err
					},
				},
				Show: func(ctx echo.Context) error {
					return f.showSecret(ctx, owner, "Secret rotated", rotated.Credentials,
						found.MerchantUIDs)
				},
			}), nil
		},
	}
}

// limitClient sets how often a client may ask.
func (f *Feature) limitClient() action.Spec {
	return action.Spec{
		Path: paths.ClientRate, Shown: "console.client.limit", Sent: "console.client.limit.save",
		Role: clerk,
		Ask: func(ctx echo.Context) (action.Form, error) {
			found, owner, err := f.ownedClient(ctx)
			if err != nil {
				return action.Form{}, err
			}
			// What is no number is 0, which the service refuses with the bounds.
			perSecond, _ := strconv.Atoi(strings.TrimSpace(ctx.FormValue("rate")))
			burst, _ := strconv.Atoi(strings.TrimSpace(ctx.FormValue("burst")))
			return clientForm(found, owner, "rate", action.Form{
				Fields: ui.AskForm{
					Title: "Rate limit", Submit: "Save",
					Says: []string{
						"Faster requests are answered with 429 and Retry-After. The new limit applies " +
							"from the next request on.",
					},
					Controls: []ui.Control{
						{
							Name: "rate", Label: "Requests a second", Type: "number", Required: true,
							Value: strconv.Itoa(found.RatePerSecond), Hint: "On average. The default is 50.",
						},
						{
							Name: "burst", Label: "Burst", Type: "number", Required: true,
							Value: strconv.Itoa(found.Burst),
							Hint:  "How many may come at once after a pause. The default is 100.",
						},
					},
				},
				Change: action.Change{
					Done: "Saved. The new limit holds from the next request on.",
					Do: func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
						err := f.Partners.SetRate(ctx, tx, found.ID, perSecond, burst)
						return operator.Did(paths.To(paths.Client, found.ID), operator.Entry{
							Action: "client.rate", SubjectKind: "client", Subject: found.ID,
							Before: map[string]any{"rate": found.RatePerSecond, "burst": found.Burst},
							After:  map[string]any{"rate": perSecond, "burst": burst},
						}), err
					},
				},
			}), nil
		},
	}
}

// revokeClient ends a client for good; the end of its id confirms it.
func (f *Feature) revokeClient() action.Spec {
	return action.Spec{
		Path: paths.ClientRevoke, Shown: "console.client.revocation", Sent: "console.client.revoke",
		Role: clerk,
		Ask: func(ctx echo.Context) (action.Form, error) {
			found, owner, err := f.ownedClient(ctx)
			if err != nil {
				return action.Form{}, err
			}
			proof, confirmed := found.ID[len(found.ID)-6:], strings.TrimSpace(ctx.FormValue("confirm"))
			fields := ui.AskForm{
				Title: "Revoke this client", Submit: "Revoke for good", Danger: true,
				Says: []string{
					"Every request with its id is refused with 401 from now on, also during an overlap of " +
						"its secrets. Nothing brings it back; the partner would get another client.",
				},
				Controls: []ui.Control{{
					Name: "confirm", Label: "Type the last six characters of its id, " + proof,
					Autocomplete: "off", MaxLength: 100, Required: true, Autofocus: true,
				}},
			}
			if found.LastUsedAt != nil && f.DB.Now().Sub(*found.LastUsedAt) < day {
				fields.Risks = []string{
					"It was used within the last 24 hours: " + owner.Name + " still needs it.",
				}
			}
			return clientForm(found, owner, "revoke", action.Form{
				Fields: fields,
				Change: action.Change{
					Done: "Revoked. Requests with this client are refused from now on.",
					Do: func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
						if confirmed != proof {
							return operator.Outcome{}, lending.Invalid("confirm",
								"That is not %s. Nothing was revoked.", proof)
						}
						outcome := operator.Outcome{Target: paths.To(paths.Client, found.ID)}
						err := f.Partners.RevokeClient(ctx, tx, found.ID)
						if err != nil || found.RevokedAt != nil {
							return outcome, err
						}
						return operator.Did(outcome.Target, operator.Entry{
							Action: "client.revoke", SubjectKind: "client", Subject: found.ID,
							Before: map[string]any{"revoked": false}, After: map[string]any{"revoked": true},
						}), nil
					},
				},
			}), nil
		},
	}
}
