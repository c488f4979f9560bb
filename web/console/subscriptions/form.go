package subscriptions

import (
	"cmp"
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

	"drawbridge/internal/lending"
	"drawbridge/internal/search"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/paths"
	"drawbridge/views/subscriptions"
	"drawbridge/views/ui"
	"drawbridge/web/console/page"
)

// offeredMerchants is how many merchants a form offers to tick at a time.
const offeredMerchants = 50

// maxMerchants bounds the chosen merchants that a form shows.
const maxMerchants = 500

// The values of a form's secret_mode.
const (
	secretKeep     = "keep"
	secretGenerate = "generate"
	secretPaste    = "paste"
)

// sampleTime dates the samples of the form.
var sampleTime = time.Date(2026, time.January, 15, 9, 30, 0, 123456000, time.UTC)

// editor serves the form that creates or changes a subscription.
type editor struct{ *Feature }

// newForm shows the form for a new subscription.
func (f editor) newForm(ctx echo.Context) error {
	form := subscriptions.Form{
		Partner: ctx.QueryParam("partner"), URL: ctx.QueryParam("url"), AllMerchants: true,
		AllEvents: true, Auth: string(sender.AuthHMAC), SecretMode: secretGenerate,
		TestEvent: string(lending.EventStatusUpdated), Focus: "url",
	}
	if err := f.addChoices(ctx.Request().Context(), &form, nil, nil, nil); err != nil {
		return err
	}
	return f.showForm(ctx, http.StatusOK, form)
}

// editForm shows the form with a subscription's current settings.
func (f editor) editForm(ctx echo.Context) error {
	current, _, err := f.subscription(ctx)
	if err != nil {
		return err
	}
	form, err := f.formOf(ctx.Request().Context(), current)
	if err != nil {
		return err
	}
	return f.showForm(ctx, http.StatusOK, form)
}

// showForm answers with the form alone if a script asks, or else with the page.
func (f editor) showForm(ctx echo.Context, status int, form subscriptions.Form) error {
	form.Timeout = f.Webhooks.Subscriptions.Sender.Timeout()
	if page.IsFragment(ctx) {
		return page.Render(ctx, status, subscriptions.FormRegion(form))
	}
	at := place.Under(paths.Subscriptions, "New subscription")
	at.Here = "New"
	if !form.IsNew() {
		label := subscription.Options{Name: form.Name}.Label(form.URL)
		at = place.Under(paths.Subscriptions, label).
			Under(paths.To(paths.Subscription, form.UID), "Edit "+label)
		at.Here = "Edit"
	}
	return f.Show(ctx, status, at, subscriptions.FormPage(form))
}

// formOf returns the form filled with a subscription's settings, without secret header values.
func (f editor) formOf(
	ctx context.Context, current subscription.Subscription,
) (subscriptions.Form, error) {
	form := subscriptions.Form{
		UID: current.UID.String(), Version: current.Version, Partner: current.PartnerUID.String(),
		URL: current.URL, Auth: string(current.Auth), StoredAuth: string(current.Auth),
		AllMerchants: len(current.Merchants) == 0,
		AllEvents:    slices.Contains(current.Events, subscription.AllEvents),
		SecretMode:   secretKeep, TestEvent: string(lending.EventStatusUpdated),
		HeadersUnknown:   current.HeadersUnknown,
		PauseWhenFailing: current.Watch.Pause, AlertEmail: current.Watch.AlertEmail,
		Name: current.Name, Retry: current.Retry.String(), Standard: current.Standard,
		Loaded: true,
	}
	if current.Auth == sender.AuthNone {
		form.SecretMode = secretGenerate
	}
	if current.Rate > 0 {
		form.Rate = strconv.Itoa(current.Rate)
	}
	for i, header := range current.Headers {
		field := subscriptions.HeaderField{
			Key: i + 1, Name: header.Name, Plain: header.Plain, Kept: !header.Plain,
		}
		if header.Plain {
			field.Value = header.Value
		}
		form.Headers = append(form.Headers, field)
	}
	err := f.addChoices(ctx, &form, current.Events, current.Merchants, nil)
	return form, err
}

// readForm reads the form's input. current is the subscription that is changed, nil for a
// new one.
func (f editor) readForm(
	ctx echo.Context, current *subscription.Subscription,
) (subscriptions.Form, error) {
	values, err := ctx.FormParams()
	if err != nil {
		return subscriptions.Form{}, err
	}
	form := subscriptions.Form{
		Partner: values.Get("partner"), URL: strings.TrimSpace(values.Get("url")),
		AllMerchants: values.Get("merchants") != "some", AllEvents: values.Get("events") != "some",
		Auth: values.Get("auth"), SecretMode: values.Get("secret_mode"),
		Secret: strings.TrimSpace(values.Get("secret")), Reason: values.Get("reason"),
		TestEvent:        values.Get("test_event"),
		Rate:             strings.TrimSpace(values.Get("rate")),
		PauseWhenFailing: values.Get("on_failing") == "pause",
		AlertEmail:       strings.TrimSpace(values.Get("alert_email")),
		ReplaceHeaders:   values.Get("headers_replace") != "",
		Name:             strings.TrimSpace(values.Get("name")),
		Retry:            strings.TrimSpace(values.Get("retry")),
		Standard:         values.Get("standard") != "",
	}
	form.Version, _ = strconv.Atoi(values.Get("version")) // 0 is no version
	form.Headers = readHeaders(values, sender.Auth(form.Auth))
	var stored []uuid.UUID
	if current != nil {
		form.UID, form.Partner = current.UID.String(), current.PartnerUID.String()
		form.StoredAuth, form.HeadersUnknown = string(current.Auth), current.HeadersUnknown
		if stored, err = f.merchantsSeen(ctx.Request().Context(), *current, form.Version); err != nil {
			return subscriptions.Form{}, err
		}
		// Stored merchants that the form did not show stay as they are. A form that does not say
		// which merchants it showed is taken to have shown all of them.
		if shown := parseUIDs(values["merchant_shown"]); len(shown) > 0 {
			form.Unshown = slices.DeleteFunc(slices.Clone(stored),
				func(uid uuid.UUID) bool { return slices.Contains(shown, uid) })
		}
	}
	form.PartnerSought = strings.TrimSpace(values.Get("partner" + ui.SoughtSuffix))
	form.MerchantSought = strings.TrimSpace(values.Get("merchant" + ui.SoughtSuffix))
	err = f.addChoices(ctx.Request().Context(), &form, values["event"],
		parseUIDs(values["merchant"]), stored)
	return form, err
}

// merchantsSeen returns the merchants that a subscription covered in the version that a
// form was filled from, which may no longer be in force.
func (f editor) merchantsSeen(
	ctx context.Context, current subscription.Subscription, version int,
) ([]uuid.UUID, error) {
	if version == current.Version {
		return current.Merchants, nil
	}
	versions, err := f.Webhooks.Subscriptions.Versions(ctx, current.UID)
	if err != nil {
		return nil, err
	}
	return versions[begunAt(versions, version)].Merchants, nil
}

// parseUIDs returns the valid ids among texts.
func parseUIDs(texts []string) []uuid.UUID {
	var uids []uuid.UUID
	for _, text := range texts {
		if uid, err := uuid.Parse(text); err == nil {
			uids = append(uids, uid)
		}
	}
	return uids
}

// readHeaders reads the rows of the header editor in order, and notes on valid rows how
// they will be treated.
func readHeaders(values url.Values, auth sender.Auth) []subscriptions.HeaderField {
	var fields []subscriptions.HeaderField
	names, texts, kinds := values["header_name"], values["header_value"], values["header_kind"]
	for i, text := range values["header_key"] {
		key, err := strconv.Atoi(text)
		if err != nil || i >= len(names) || i >= len(texts) {
			continue
		}
		field := subscriptions.HeaderField{
			Key: key, Name: strings.TrimSpace(names[i]), Value: texts[i],
			Kept:  slices.Contains(values["header_kept"], text),
			Plain: i < len(kinds) && kinds[i] == subscriptions.HeaderPlain,
		}
		switch name := strings.ToLower(field.Name); name {
		case "authorization":
			if auth == sender.AuthBearer {
				field.Note = "Overruled while the authentication is a bearer token: that sets this " +
					"header itself."
			}
		case "x-hmac-signature", "x-hmac-signature-previous":
			if auth == sender.AuthHMAC {
				field.Note = "Overruled while the authentication is HMAC: that sets this header itself."
			}
		case "content-type", "user-agent":
			field.Note = "Replaces the one that is sent otherwise."
		case "keep-alive", "proxy-connection", "te", "upgrade":
			field.Note = "Does not exist in HTTP/2: requests go over HTTP/1.1."
		}
		fields = append(fields, field)
	}
	return fields
}

// addChoices adds the events and merchants to choose from, with the chosen ones ticked. All
// ticked and stored merchants are listed however many there are, so that the form shows
// everything that saving it replaces.
func (f editor) addChoices(
	ctx context.Context, form *subscriptions.Form, events []string, ticked, stored []uuid.UUID,
) (err error) {
	for _, kind := range lending.AllEventKinds() {
		event, err := lending.SampleEvent(kind)
		if err != nil {
			return fmt.Errorf("describing %s: %w", kind, err)
		}
		sample, err := event.Render(sampleTime)
		if err != nil {
			return err
		}
		form.Events = append(form.Events, subscriptions.EventChoice{
			Kind: kind, Sample: sample, Checked: slices.Contains(events, string(kind)),
		})
	}
	if form.IsNew() {
		form.Partners, form.PartnerPick, err = f.Pick(ctx, search.Partner, "Choose a partner",
			form.PartnerSought, form.Partner)
		if err != nil {
			return err
		}
	}
	uid, err := uuid.Parse(form.Partner)
	if err != nil {
		return nil //nolint:nilerr // no partner is chosen yet
	}
	owner, err := f.Partners.Partner(ctx, uid)
	if lending.ErrorCode(err) == lending.CodeNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	form.PartnerName = owner.Name
	return f.addMerchants(ctx, form, ticked, stored)
}

func (f editor) addMerchants(
	ctx context.Context, form *subscriptions.Form, ticked, stored []uuid.UUID,
) error {
	if over := len(ticked) - maxMerchants; over > 0 {
		form.Unshown = append(form.Unshown, ticked[maxMerchants:]...)
		ticked = ticked[:maxMerchants]
	}
	known := make(map[uuid.UUID]bool, len(ticked)+len(form.Unshown))
	for _, uid := range form.Unshown {
		known[uid] = true // it stays and is not offered
	}
	shown := slices.DeleteFunc(slices.Concat(ticked, stored),
		func(uid uuid.UUID) bool { return known[uid] })
	chosen, err := f.Things.Name(ctx, search.Merchant, shown...)
	if err != nil {
		return err
	}
	found, err := f.Things.Pick(ctx, search.Merchant, form.MerchantSought,
		uuid.MustParse(form.Partner), offeredMerchants)
	if err != nil {
		return err
	}
	for _, choice := range slices.Concat(chosen, found.Choices) {
		if known[choice.UID] {
			continue // list each once
		}
		known[choice.UID] = true
		form.Merchants = append(form.Merchants, subscriptions.Choice{
			Value: choice.UID.String(), Checked: slices.Contains(ticked, choice.UID),
			Stored: slices.Contains(stored, choice.UID) || form.Loaded &&
				slices.Contains(ticked, choice.UID),
			Label: strings.TrimSuffix(choice.Label, ", "+form.PartnerName),
		})
	}
	// List the ticked merchants first.
	slices.SortStableFunc(form.Merchants, func(a, b subscriptions.Choice) int {
		return strings.Compare(strconv.FormatBool(b.Checked), strconv.FormatBool(a.Checked))
	})
	if form.MerchantSought != "" || found.Total > len(found.Choices) {
		form.MerchantPick = &ui.Picker{
			Text: form.MerchantSought, Shown: len(found.Choices), Total: found.Total,
		}
	}
	return nil
}

// chosenEvents returns the event kinds of a form in the form of settings.
func chosenEvents(form subscriptions.Form) []string {
	chosen := []string{}
	if form.AllEvents {
		chosen = append(chosen, subscription.AllEvents)
	}
	for _, event := range form.Events {
		if event.Checked && (event.Kind.IsOptIn() || !form.AllEvents) {
			chosen = append(chosen, string(event.Kind))
		}
	}
	return chosen
}

// chosenMerchants returns the ticked merchants of a form, with their names; none means all.
func chosenMerchants(form subscriptions.Form) (uids []uuid.UUID, names []string) {
	uids = []uuid.UUID{}
	for _, merchant := range form.Merchants {
		if merchant.Checked && !form.AllMerchants {
			uids = append(uids, uuid.MustParse(merchant.Value))
			names = append(names, merchant.Label)
		}
	}
	if form.AllMerchants || len(form.Unshown) == 0 {
		return uids, names
	}
	names = append(names, ui.Number(len(form.Unshown))+" more")
	return append(uids, form.Unshown...), names
}

// editHeaders adds or removes a header row if the pressed button asks for that, and reports
// whether it does.
func editHeaders(form *subscriptions.Form, pressed string) bool {
	if pressed == "add-header" {
		last := subscriptions.HeaderField{}
		if len(form.Headers) > 0 {
			last = slices.MaxFunc(form.Headers, func(a, b subscriptions.HeaderField) int {
				return cmp.Compare(a.Key, b.Key)
			})
		}
		key := max(last.Key, 0) + 1
		form.Headers = append(form.Headers, subscriptions.HeaderField{Key: key})
		form.Focus = "header-" + strconv.Itoa(key) + "-name"
		return true
	}
	text, found := strings.CutPrefix(pressed, "remove-")
	if found {
		form.Headers = slices.DeleteFunc(form.Headers, func(field subscriptions.HeaderField) bool {
			return strconv.Itoa(field.Key) == text
		})
		form.Focus = "add-header"
	}
	return found
}
