package console

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/partner"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook"
	"drawbridge/views/subscriptions"
	"drawbridge/views/ui"
)

// maxMerchants bounds the merchants to choose from, beside those that are chosen.
const maxMerchants = 500

// The values of a form's secret_mode.
const (
	secretKeep     = "keep"
	secretGenerate = "generate"
	secretPaste    = "paste"
)

// newForm is the empty form for a new subscription.
func (c *Console) newForm(
	ctx context.Context, query url.Values,
) (subscriptions.SubscriptionForm, error) {
	form := subscriptions.SubscriptionForm{
		Partner: query.Get("partner"), URL: query.Get("url"), AllMerchants: true, AllEvents: true,
		Auth: string(webhook.AuthHMAC), SecretMode: secretGenerate,
		TestEvent: string(lending.EventStatusUpdated), Focus: "url",
	}
	var err error
	if form.Events, err = eventChoices(nil); err != nil {
		return form, err
	}
	err = c.furnishForm(ctx, &form, nil, nil)
	return form, err
}

// formOf is the form as a subscription fills it.
func (c *Console) formOf(
	ctx context.Context, current webhook.Subscription,
) (subscriptions.SubscriptionForm, error) {
	form := subscriptions.SubscriptionForm{
		UID: current.UID.String(), Version: current.Version, Partner: current.PartnerUID.String(),
		URL: current.URL, Auth: string(current.Auth), StoredAuth: string(current.Auth),
		AllMerchants: len(current.Merchants) == 0,
		AllEvents:    slices.Contains(current.Events, webhook.AllEvents),
		SecretMode:   secretKeep, Rate: rateText(current.Rate),
		TestEvent: string(lending.EventStatusUpdated),
	}
	if current.Auth == webhook.AuthNone {
		form.SecretMode = secretGenerate
	}
	form.Headers, form.HeadersUnknown = headerFields(current.Headers), current.HeadersUnknown
	form.PauseWhenFailing, form.AlertEmail = current.Watch.Pause, current.Watch.AlertEmail
	var err error
	if form.Events, err = eventChoices(current.Events); err != nil {
		return form, err
	}
	err = c.furnishForm(ctx, &form, uidStrings(current.Merchants), nil)
	return form, err
}

// headerFields are stored headers as rows; secret values stay where they are.
func headerFields(headers []webhook.Header) []subscriptions.HeaderField {
	var fields []subscriptions.HeaderField
	for i, header := range headers {
		field := subscriptions.HeaderField{Key: i + 1, Name: header.Name, Plain: header.Plain}
		if header.Plain {
			field.Value = header.Value
		} else {
			field.Kept = true
		}
		fields = append(fields, field)
	}
	return fields
}

// furnishForm adds the choices that depend on what is chosen already. ticked are the
// merchants that are chosen; they and the stored ones are listed however many there
// are, so that the form shows all that saving it replaces.
func (c *Console) furnishForm(
	ctx context.Context, form *subscriptions.SubscriptionForm, ticked []string, stored []uuid.UUID,
) error {
	var err error
	if form.IsNew() {
		if form.Partners, err = c.partnerOptions(ctx, "Choose a partner"); err != nil {
			return err
		}
	}
	uid, err := uuid.Parse(form.Partner)
	if err != nil {
		return nil //nolint:nilerr // no partner is chosen yet
	}
	owner, err := c.Partners.Partner(ctx, uid)
	if lending.ErrorCode(err) == lending.CodeNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	form.PartnerName = owner.Name
	if form.IsNew() && !slices.ContainsFunc(form.Partners,
		func(o ui.Option) bool { return o.Value == form.Partner }) {
		form.Partners = append(form.Partners, ui.Option{Value: form.Partner, Label: owner.Name})
	}
	owned, _, err := c.Partners.ListMerchants(ctx,
		partner.MerchantFilter{PartnerUID: uid, Limit: maxMerchants})
	if err != nil {
		return err
	}
	listed := make(map[uuid.UUID]bool, len(owned))
	list := func(uid uuid.UUID, name string) {
		listed[uid] = true
		form.Merchants = append(form.Merchants, subscriptions.Choice{
			Value: uid.String(), Label: name, Checked: slices.Contains(ticked, uid.String()),
		})
	}
	for _, merchant := range owned {
		list(merchant.UID, merchant.Name)
	}
	var more []uuid.UUID
	for _, uid := range append(parseKnown(ticked), stored...) {
		if !listed[uid] {
			listed[uid] = true
			more = append(more, uid)
		}
	}
	names, err := c.Partners.MerchantNames(ctx, more)
	for _, uid := range more {
		if name, found := names[uid]; found {
			list(uid, name)
		}
	}
	return err
}

// parseKnown are the ids among the texts.
func parseKnown(texts []string) []uuid.UUID {
	var uids []uuid.UUID
	for _, text := range texts {
		if uid, err := uuid.Parse(text); err == nil {
			uids = append(uids, uid)
		}
	}
	return uids
}

// readForm reads what was typed. current is the subscription that is changed,
// nil for a new one.
func (c *Console) readForm(
	ctx echo.Context, current *webhook.Subscription,
) (subscriptions.SubscriptionForm, error) {
	values, err := ctx.FormParams()
	if err != nil {
		return subscriptions.SubscriptionForm{}, err
	}
	version, _ := strconv.Atoi(values.Get("version")) // 0 is a version that never was
	form := subscriptions.SubscriptionForm{
		Version: version, Partner: values.Get("partner"), URL: strings.TrimSpace(values.Get("url")),
		AllMerchants: values.Get("merchants") != "some", AllEvents: values.Get("events") != "some",
		Auth: values.Get("auth"), SecretMode: values.Get("secret_mode"),
		Secret: strings.TrimSpace(values.Get("secret")), Reason: values.Get("reason"),
		TestEvent: values.Get("test_event"), Headers: readHeaders(values),
		Rate:             strings.TrimSpace(values.Get("rate")),
		PauseWhenFailing: values.Get("on_failing") == "pause",
		AlertEmail:       strings.TrimSpace(values.Get("alert_email")),
		ReplaceHeaders:   values.Get("headers_replace") != "",
	}
	var stored []uuid.UUID
	if current != nil {
		form.UID, form.Partner = current.UID.String(), current.PartnerUID.String()
		form.StoredAuth, form.HeadersUnknown = string(current.Auth), current.HeadersUnknown
		stored = current.Merchants
	}
	if form.Events, err = eventChoices(values["event"]); err != nil {
		return form, err
	}
	noteHeaders(&form)
	err = c.furnishForm(ctx.Request().Context(), &form, values["merchant"], stored)
	return form, err
}

// readHeaders reads the rows of the header editor in their order.
func readHeaders(values url.Values) []subscriptions.HeaderField {
	var fields []subscriptions.HeaderField
	names, texts, kinds := values["header_name"], values["header_value"], values["header_kind"]
	for i, text := range values["header_key"] {
		key, err := strconv.Atoi(text)
		if err != nil || i >= len(names) || i >= len(texts) {
			continue
		}
		fields = append(fields, subscriptions.HeaderField{
			Key: key, Name: strings.TrimSpace(names[i]), Value: texts[i],
			Kept:  slices.Contains(values["header_kept"], text),
			Plain: i < len(kinds) && kinds[i] == subscriptions.HeaderPlain,
		})
	}
	return fields
}

// editHeaders adds or removes a row as the pressed button says, and tells
// whether it was such a button.
func editHeaders(form *subscriptions.SubscriptionForm, act string) bool {
	if act == "add-header" {
		key := 1
		for _, field := range form.Headers {
			key = max(key, field.Key+1)
		}
		form.Headers = append(form.Headers, subscriptions.HeaderField{Key: key})
		form.Focus = "header-" + strconv.Itoa(key) + "-name"
		return true
	}
	text, found := strings.CutPrefix(act, "remove-")
	if !found {
		return false
	}
	form.Headers = slices.DeleteFunc(form.Headers, func(field subscriptions.HeaderField) bool {
		return strconv.Itoa(field.Key) == text
	})
	form.Focus = "add-header"
	return true
}

// noteHeaders says at each header what becomes of it although it is right.
func noteHeaders(form *subscriptions.SubscriptionForm) {
	for i := range form.Headers {
		switch strings.ToLower(form.Headers[i].Name) {
		case "authorization":
			if form.Auth == string(webhook.AuthBearer) {
				form.Headers[i].Note = "Overruled while the authentication is a bearer token: " +
					"that sets this header itself."
			}
		case "x-hmac-signature", "x-hmac-signature-previous":
			if form.Auth == string(webhook.AuthHMAC) {
				form.Headers[i].Note = "Overruled while the authentication is HMAC: that sets this " +
					"header itself."
			}
		case "content-type", "user-agent":
			form.Headers[i].Note = "Replaces the one that is sent otherwise."
		case "keep-alive", "proxy-connection", "te", "upgrade":
			form.Headers[i].Note = "Does not exist in HTTP/2: requests go over HTTP/1.1."
		}
	}
}

// settingsOf are the settings that a form asks for, and for each header the row
// that it stands in. watch is what the form shows a part of.
func settingsOf(
	form subscriptions.SubscriptionForm, watch webhook.Watch,
) (webhook.Settings, []subscriptions.HeaderField) {
	settings := webhook.Settings{
		URL: form.URL, Auth: webhook.Auth(form.Auth), Events: chosenEvents(form),
		Merchants: chosenMerchants(form), Headers: []webhook.Header{}, Watch: watch,
	}
	settings.Watch.Pause, settings.Watch.AlertEmail = form.PauseWhenFailing, form.AlertEmail
	settings.Rate, _ = strconv.Atoi(form.Rate) // checkForm names what is no number
	if form.SecretMode == secretPaste && form.Secret != "" {
		settings.Secret = secret.New(form.Secret)
	}
	var rows []subscriptions.HeaderField
	for _, field := range form.Headers {
		if field.Name == "" && field.Value == "" {
			continue // a row that nobody filled
		}
		settings.Headers = append(settings.Headers, webhook.Header{
			Name: field.Name, Value: field.Value, Plain: field.Plain,
			Kept: field.Kept && field.Value == "",
		})
		rows = append(rows, field)
	}
	return settings, rows
}

func chosenMerchants(form subscriptions.SubscriptionForm) []uuid.UUID {
	chosen := []uuid.UUID{}
	if form.AllMerchants {
		return chosen
	}
	for _, merchant := range form.Merchants {
		if merchant.Checked {
			chosen = append(chosen, parseKnown([]string{merchant.Value})...)
		}
	}
	return chosen
}

func uidStrings(uids []uuid.UUID) []string {
	texts := make([]string, 0, len(uids))
	for _, uid := range uids {
		texts = append(texts, uid.String())
	}
	return texts
}
