package console

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
	"drawbridge/views/partners"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// clientOverlaps are for how long an old secret may go on working.
var clientOverlaps = []ui.Option{
	{Value: "24h", Label: "24 hours"},
	{Value: "0s", Label: "Not at all: the old secret stops at once"},
	{Value: "1h", Label: "1 hour"},
	{Value: "168h", Label: "7 days"},
	{Value: "720h", Label: "30 days"},
}

// clientRows shows clients with the names of their merchants.
func (c *Console) clientRows(
	ctx context.Context, clients []partner.Client,
) ([]partners.ClientRow, error) {
	var uids []uuid.UUID
	for _, client := range clients {
		uids = append(uids, client.MerchantUIDs...)
	}
	names, err := c.Partners.MerchantNames(ctx, uids)
	if err != nil {
		return nil, err
	}
	rows := make([]partners.ClientRow, 0, len(clients))
	for _, client := range clients {
		rows = append(rows, clientRow(client, names, c.DB.Now()))
	}
	return rows, nil
}

func clientRow(
	client partner.Client, names map[uuid.UUID]string, now time.Time,
) partners.ClientRow {
	row := partners.ClientRow{
		ID: client.ID, Group: client.Group, Hint: client.Hint, LastUsed: value(client.LastUsedAt),
		Revoked: value(client.RevokedAt), Created: client.CreatedAt,
		Rate: client.RatePerSecond, Burst: client.Burst,
	}
	for _, uid := range client.MerchantUIDs {
		row.Merchants = append(row.Merchants, names[uid])
	}
	if until := client.PreviousValidUntil; until != nil && now.Before(*until) {
		row.PreviousUntil, row.PreviousHint = *until, client.PreviousHint
	}
	return row
}

// clientForm asks what a new client may do.
func (c *Console) clientForm(
	ctx context.Context, uid uuid.UUID,
) (partner.Partner, ui.AskForm, error) {
	owner, err := c.Partners.Partner(ctx, uid)
	if err != nil {
		return partner.Partner{}, ui.AskForm{}, err
	}
	merchants, _, err := c.Partners.ListMerchants(ctx, partner.MerchantFilter{
		PartnerUID: uid, Limit: shownOfPartner,
	})
	if err != nil {
		return partner.Partner{}, ui.AskForm{}, err
	}
	path := paths.To(paths.Partner, uid.String())
	choice := ui.Control{
		Kind: ui.ControlChecks, Name: "merchant", Label: "Acts for",
		Hint: "A plain client acts for exactly one merchant. A group client may act for several, " +
			"and names one in each request.",
	}
	for _, merchant := range merchants {
		choice.Options = append(choice.Options, ui.Option{
			Value: merchant.UID.String(), Label: merchant.Name,
		})
	}
	if len(merchants) == 1 {
		choice.Values = []string{merchants[0].UID.String()}
	}
	return owner, ui.AskForm{
		Title: "Issue credentials", Action: path + "/clients/new", Cancel: path, Wide: true,
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
	}, nil
}

func (c *Console) newClient(ctx echo.Context) error {
	uid, err := pathUID(ctx)
	if err != nil {
		return err
	}
	owner, form, err := c.clientForm(ctx.Request().Context(), uid)
	if err != nil {
		return err
	}
	return c.showAsk(ctx, http.StatusOK, partnersSpot.under(owner.Name, form.Cancel), form)
}

// issueClient issues credentials and shows the secret, this once.
func (c *Console) issueClient(ctx echo.Context) error {
	uid, err := pathUID(ctx)
	if err != nil {
		return err
	}
	owner, form, err := c.clientForm(ctx.Request().Context(), uid)
	if err != nil {
		return err
	}
	form = typed(ctx, form)
	at := partnersSpot.under(owner.Name, form.Cancel)
	request, err := readClient(ctx, uid)
	if err != nil {
		return c.askAgain(ctx, at, form, err)
	}
	var issued partner.Issued
	_, err = c.commit(ctx, commitment{
		do: func(ctx context.Context, tx *postgres.Tx) (operator.Entry, string, error) {
			if issued, err = c.Partners.CreateClient(ctx, tx, request); err != nil {
				return operator.Entry{}, "", err
			}
			return operator.Entry{
				Action: "client.create", SubjectKind: "client", Subject: issued.ClientID,
				After: map[string]any{
					"partner_uid": uid, "group": issued.Group, "merchant_uids": issued.MerchantUIDs,
				},
			}, paths.To(paths.Client, issued.ClientID), nil
		},
	})
	if err != nil {
		return c.askAgain(ctx, at, form, err)
	}
	return c.showSecret(ctx, owner, "Credentials issued", issued.Credentials, issued.MerchantUIDs)
}

func readClient(ctx echo.Context, partnerUID uuid.UUID) (partner.NewClient, error) {
	request := partner.NewClient{
		PartnerUID: partnerUID, Group: ctx.FormValue("kind") == "group",
	}
	values, err := ctx.FormParams()
	if err != nil {
		return request, err
	}
	for _, text := range values["merchant"] {
		uid, err := uuid.Parse(text)
		if err != nil {
			return request, lending.Invalid("merchant", `"merchant" is none of the list; choose again`)
		}
		request.MerchantUIDs = append(request.MerchantUIDs, uid)
	}
	switch {
	case len(request.MerchantUIDs) == 0:
		return request, lending.Invalid("merchant", `"merchant" is empty: tick at least one merchant`)
	case len(request.MerchantUIDs) > 1 && !request.Group:
		return request, lending.Invalid("merchant",
			`"merchant" must be exactly one merchant unless the client is a group`)
	}
	return request, nil
}

// showSecret is the one page on which a secret stands.
func (c *Console) showSecret(
	ctx echo.Context, owner partner.Partner, title string, credentials partner.Credentials,
	merchants []uuid.UUID,
) error {
	path := paths.To(paths.Client, credentials.ClientID)
	frame, err := c.frame(ctx, ui.SectionPartners, title,
		ui.Crumb{Label: "Partners", Href: paths.Partners},
		ui.Crumb{Label: owner.Name, Href: paths.To(paths.Partner, owner.UID.String())},
		ui.Crumb{Label: title})
	if err != nil {
		return err
	}
	page := ui.SecretPage{
		Frame: frame, Intro: "For the software of " + owner.Name + ".",
		Facts:  []ui.Fact{{Name: "Client id", Value: credentials.ClientID}},
		Secret: credentials.Secret, Back: path, BackLabel: "I have copied it",
		Check: c.checkCommand(credentials, merchants),
	}
	for _, uid := range merchants {
		page.Facts = append(page.Facts, ui.Fact{Name: "Merchant uid", Value: uid.String()})
	}
	return render(ctx, http.StatusOK, ui.SecretShown(page))
}

// checkCommand asks the API for what does not exist: credentials that are wrong
// are refused before that.
func (c *Console) checkCommand(credentials partner.Credentials, merchants []uuid.UUID) string {
	lines := []string{
		"curl -i " + c.apiURL() + "/v2/application/" + uuid.Nil.String(),
		"-H 'x-service-client-id: " + credentials.ClientID + "'",
		"-H \"x-service-client-secret: $SECRET\"",
	}
	if len(merchants) > 0 {
		lines = append(lines, "-H 'x-service-merchant-uid: "+merchants[0].String()+"'")
	}
	return strings.Join(lines, " \\\n  ")
}

// apiURL is the address that precedes /v2.
func (c *Console) apiURL() string {
	return strings.TrimRight(c.PublicURL, "/") + c.BasePath
}

// client shows one client.
func (c *Console) client(ctx echo.Context) error {
	request := ctx.Request().Context()
	found, owner, err := c.clientWithPartner(request, ctx.Param("id"))
	if err != nil {
		return err
	}
	rows, err := c.clientRows(request, []partner.Client{found})
	if err != nil {
		return err
	}
	page := partners.ClientPage{
		Client: rows[0], PartnerUID: owner.UID.String(), PartnerName: owner.Name,
	}
	for i, uid := range found.MerchantUIDs {
		page.Merchants = append(page.Merchants, partners.MerchantRow{
			UID: uid.String(), Name: rows[0].Merchants[i],
		})
	}
	page.Traffic, err = c.traffic(request, apilog.Scope{ClientID: found.ID})
	if err != nil {
		return err
	}
	page.Frame, err = c.frame(ctx, ui.SectionPartners, "Client "+found.ID,
		ui.Crumb{Label: "Partners", Href: paths.Partners},
		ui.Crumb{Label: owner.Name, Href: paths.To(paths.Partner, owner.UID.String())},
		ui.Crumb{Label: clientLabel(found.ID)})
	if err != nil {
		return err
	}
	page.Notice = c.takeNotice(ctx)
	return render(ctx, http.StatusOK, partners.ClientDetailPage(page))
}

func (c *Console) clientWithPartner(
	ctx context.Context, id string,
) (partner.Client, partner.Partner, error) {
	found, err := c.Partners.Client(ctx, id)
	if err != nil {
		return partner.Client{}, partner.Partner{}, err
	}
	owner, err := c.Partners.Partner(ctx, found.PartnerUID)
	return found, owner, err
}

// clientSpot is under the client's page.
func clientSpot(client partner.Client, owner partner.Partner) spot {
	return partnersSpot.under(owner.Name, paths.To(paths.Partner, owner.UID.String())).
		under(clientLabel(client.ID), paths.To(paths.Client, client.ID))
}

// clientLabel is a client's id by its end, which tells it from others.
func clientLabel(id string) string { return "Client …" + id[max(len(id)-6, 0):] }

// aboutClient names a client for those who are about to change it.
func aboutClient(client partner.Client, owner partner.Partner) string {
	return client.ID + " of " + owner.Name
}

func rotationForm(
	client partner.Client, owner partner.Partner, now time.Time,
) ui.AskForm {
	path := paths.To(paths.Client, client.ID)
	form := ui.AskForm{
		Title: "Rotate the secret", Action: path + "/rotate", Cancel: path,
		Submit: "Issue a new secret", About: aboutClient(client, owner),
		Says: []string{
			"The client gets a new secret, which is shown once on the next page. The old one goes on " +
				"working for the overlap, so that the partner can change over without a gap.",
		},
		Controls: []ui.Control{{
			Kind: ui.ControlSelect, Name: "overlap", Label: "The old secret works on for",
			Value: clientOverlaps[0].Value, Options: clientOverlaps,
		}},
	}
	if until := client.PreviousValidUntil; until != nil && now.Before(*until) {
		form.Risks = append(form.Risks, "A rotation is under way. The secret before the present one "+
			"stops at once if you rotate again.")
	}
	return form
}

func (c *Console) rotation(ctx echo.Context) error {
	found, owner, err := c.clientWithPartner(ctx.Request().Context(), ctx.Param("id"))
	if err != nil {
		return err
	}
	return c.showAsk(ctx, http.StatusOK, clientSpot(found, owner),
		rotationForm(found, owner, c.DB.Now()))
}

// rotateClient gives a client a new secret and shows it, this once.
func (c *Console) rotateClient(ctx echo.Context) error {
	found, owner, err := c.clientWithPartner(ctx.Request().Context(), ctx.Param("id"))
	if err != nil {
		return err
	}
	form, at := typed(ctx, rotationForm(found, owner, c.DB.Now())), clientSpot(found, owner)
	chosen := ctx.FormValue("overlap")
	overlap, err := time.ParseDuration(chosen)
	known := slices.ContainsFunc(clientOverlaps, func(o ui.Option) bool {
		return o.Value == chosen
	})
	if err != nil || !known {
		return c.askAgain(ctx, at, form,
			lending.Invalid("overlap", `"overlap" must be one of the list`))
	}
	var rotated partner.Rotated
	_, err = c.commit(ctx, commitment{
		do: func(ctx context.Context, tx *postgres.Tx) (operator.Entry, string, error) {
			if rotated, err = c.Partners.RotateClient(ctx, tx, found.ID, overlap); err != nil {
				return operator.Entry{}, "", err
			}
			return operator.Entry{
				Action: "client.rotate", SubjectKind: "client", Subject: found.ID,
				After: map[string]any{"previous_valid_until": rotated.PreviousValidUntil},
			}, paths.To(paths.Client, found.ID), nil
		},
	})
	if err != nil {
		return c.askAgain(ctx, at, form, err)
	}
	return c.showSecret(ctx, owner, "Secret rotated", rotated.Credentials, found.MerchantUIDs)
}

// clientRate asks for the rate of a client, and sets it.
func (c *Console) clientRate(ctx echo.Context) error {
	found, owner, err := c.clientWithPartner(ctx.Request().Context(), ctx.Param("id"))
	if err != nil {
		return err
	}
	path := paths.To(paths.Client, found.ID)
	form := ui.AskForm{
		Title: "Rate limit", Action: path + "/rate", Cancel: path, Submit: "Save",
		About: aboutClient(found, owner),
		Says: []string{
			"Faster requests are answered with 429 and Retry-After. The new limit applies from the " +
				"next request on.",
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
	}
	at := clientSpot(found, owner)
	if !isSent(ctx) {
		return c.showAsk(ctx, http.StatusOK, at, form)
	}
	form = typed(ctx, form)
	// What is no number is 0, which the service refuses with the bounds.
	perSecond, _ := strconv.Atoi(strings.TrimSpace(ctx.FormValue("rate")))
	burst, _ := strconv.Atoi(strings.TrimSpace(ctx.FormValue("burst")))
	return c.answerAsk(ctx, at, form, commitment{
		done: "Saved. The new limit holds from the next request on.",
		do: func(ctx context.Context, tx *postgres.Tx) (operator.Entry, string, error) {
			err := c.Partners.SetRate(ctx, tx, found.ID, perSecond, burst)
			return operator.Entry{
				Action: "client.rate", SubjectKind: "client", Subject: found.ID,
				Before: map[string]any{"rate": found.RatePerSecond, "burst": found.Burst},
				After:  map[string]any{"rate": perSecond, "burst": burst},
			}, path, err
		},
	})
}

// revokeClient asks for the end of the client's id as a confirmation, and ends
// the client for good.
func (c *Console) revokeClient(ctx echo.Context) error {
	found, owner, err := c.clientWithPartner(ctx.Request().Context(), ctx.Param("id"))
	if err != nil {
		return err
	}
	path, proof := paths.To(paths.Client, found.ID), found.ID[len(found.ID)-6:]
	form := ui.AskForm{
		Title: "Revoke this client", Action: path + "/revoke", Cancel: path,
		Submit: "Revoke for good", Danger: true, About: aboutClient(found, owner),
		Says: []string{
			"Every request with its id is refused with 401 from now on, also during an overlap of its " +
				"secrets. Nothing brings it back; the partner would get another client.",
		},
		Controls: []ui.Control{{
			Name: "confirm", Label: "Type the last six characters of its id, " + proof,
			Autocomplete: "off", MaxLength: 100, Required: true, Autofocus: true,
		}},
	}
	if found.LastUsedAt != nil && c.DB.Now().Sub(*found.LastUsedAt) < trafficDay {
		form.Risks = []string{"It was used within the last 24 hours: " + owner.Name + " still needs it."}
	}
	at := clientSpot(found, owner)
	if !isSent(ctx) {
		return c.showAsk(ctx, http.StatusOK, at, form)
	}
	form = typed(ctx, form)
	if strings.TrimSpace(ctx.FormValue("confirm")) != proof {
		form.Controls[0].Fault = "That is not " + proof + ". Nothing was revoked."
		form.Reason = ctx.FormValue("reason")
		return c.showAsk(ctx, http.StatusBadRequest, at, form)
	}
	return c.answerAsk(ctx, at, form, commitment{
		done: "Revoked. Requests with this client are refused from now on.",
		do: func(ctx context.Context, tx *postgres.Tx) (operator.Entry, string, error) {
			err := c.Partners.RevokeClient(ctx, tx, found.ID)
			if found.RevokedAt != nil {
				return operator.Entry{}, path, err
			}
			return operator.Entry{
				Action: "client.revoke", SubjectKind: "client", Subject: found.ID,
				Before: map[string]any{"revoked": false}, After: map[string]any{"revoked": true},
			}, path, err
		},
	})
}
