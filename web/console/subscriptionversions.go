package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook"
	"drawbridge/views/paths"
	"drawbridge/views/subscriptions"
	"drawbridge/views/ui"
)

// A value may be compared with a secret this often by one person.
const (
	maxComparisons   = 30
	comparisonWindow = time.Hour
)

// settingWords name the settings of a difference.
var settingWords = map[webhook.Setting]string{
	webhook.SettingURL: "URL", webhook.SettingAuth: "Authentication",
	webhook.SettingSecret: "Secret", webhook.SettingEvents: "Events",
	webhook.SettingMerchants: "Merchants", webhook.SettingHeaders: "Header",
	webhook.SettingRate: "Rate", webhook.SettingHealth: "Health rules",
	webhook.SettingState: "State",
}

// versionsTab lists the versions, and compares the two that the address names.
func (c *Console) versionsTab(
	ctx echo.Context, s webhook.Subscription,
) (subscriptions.VersionsTab, error) {
	request := ctx.Request().Context()
	versions, err := c.Webhooks.Versions(request, s.UID)
	if err != nil {
		return subscriptions.VersionsTab{}, err
	}
	tab := subscriptions.VersionsTab{}
	for i, version := range versions {
		row := versionRow(version)
		row.Current = i == 0
		if i > 0 && mayChange(ctx) && s.State != webhook.StateDeleted {
			row.Restore = paths.Where(paths.To(paths.SubscriptionRestore, s.UID.String()), "version",
				strconv.Itoa(version.Number))
		}
		tab.Rows = append(tab.Rows, row)
	}
	tab.Options = versionOptions(tab.Rows)
	tab.From, _ = strconv.Atoi(ctx.QueryParam("from")) // 0 compares nothing
	tab.To, _ = strconv.Atoi(ctx.QueryParam("to"))
	if tab.From == 0 || tab.To == 0 {
		tab.From, tab.To = max(s.Version-1, 1), s.Version
	}
	diff, err := c.Webhooks.CompareVersions(request, s.UID, tab.From, tab.To)
	if err != nil {
		return subscriptions.VersionsTab{}, err
	}
	tab.Diff, err = c.diffRows(request, diff.Changes)
	return tab, err
}

// versionOptions are the versions to choose from, newest first.
func versionOptions(rows []subscriptions.VersionRow) []ui.Option {
	options := make([]ui.Option, 0, len(rows))
	for _, row := range rows {
		text := strconv.Itoa(row.Number)
		options = append(options, ui.Option{Value: text, Label: text + ": " + row.Change})
	}
	return options
}

func versionRow(version webhook.Version) subscriptions.VersionRow {
	row := subscriptions.VersionRow{
		Number: version.Number, By: version.ChangedBy, At: version.ChangedAt, Change: version.Change,
	}
	if version.Reason != "" {
		row.Change += " (" + version.Reason + ")"
	}
	return row
}

// diffRows words differences, merchants by their names.
func (c *Console) diffRows(
	ctx context.Context, changes []webhook.SettingChange,
) ([]subscriptions.DiffRow, error) {
	var rows []subscriptions.DiffRow
	for _, change := range changes {
		row := subscriptions.DiffRow{
			Setting: strings.TrimSpace(settingWords[change.Setting] + " " + change.Name),
			Before:  change.Before, After: change.After,
		}
		switch {
		case change.Setting == webhook.SettingSecret:
			row.Before, row.After = "one secret", "another one"
		case change.Setting == webhook.SettingMerchants:
			var err error
			if row.Before, err = c.merchantName(ctx, row.Before); err != nil {
				return nil, err
			}
			if row.After, err = c.merchantName(ctx, row.After); err != nil {
				return nil, err
			}
		case change.Setting == webhook.SettingRate:
			row.Before, row.After = cmp.Or(row.Before, "no limit"), cmp.Or(row.After, "no limit")
		case change.Masked && change.Before == change.After:
			row.Before, row.After = "one hidden value", "another one"
		case change.Masked:
			row.Before, row.After = ui.HiddenWord(row.Before), ui.HiddenWord(row.After)
		}
		row.Before, row.After = cmp.Or(row.Before, "none"), cmp.Or(row.After, "none")
		rows = append(rows, row)
	}
	return rows, nil
}

// merchantName is the name of a merchant that a difference names by its id.
func (c *Console) merchantName(ctx context.Context, text string) (string, error) {
	uid, err := uuid.Parse(text)
	if err != nil {
		return text, nil //nolint:nilerr // "all", or none
	}
	merchant, err := c.Partners.Merchant(ctx, uid)
	return merchant.Name, err
}

// restoreForm shows what bringing back a version would change.
func (c *Console) restoreForm(ctx echo.Context) error {
	current, err := c.liveSubscription(ctx)
	if err != nil {
		return err
	}
	number, _ := strconv.Atoi(ctx.QueryParam("version")) // 0 is a version that never was
	version, err := c.version(ctx, current, number)
	if err != nil {
		return err
	}
	return c.showRestore(ctx, http.StatusOK, current, version,
		subscriptions.ActionForm{Base: current.Version})
}

// version is a version of the subscription.
func (c *Console) version(
	ctx echo.Context, s webhook.Subscription, number int,
) (webhook.Version, error) {
	versions, err := c.Webhooks.Versions(ctx.Request().Context(), s.UID)
	if err != nil {
		return webhook.Version{}, err
	}
	for _, version := range versions {
		if version.Number == number {
			return version, nil
		}
	}
	return webhook.Version{}, lending.NewError(lending.CodeNotFound, "There is no such version.")
}

func (c *Console) showRestore(
	ctx echo.Context, status int, current webhook.Subscription, old webhook.Version,
	form subscriptions.ActionForm,
) error {
	request := ctx.Request().Context()
	diff, err := c.Webhooks.CompareVersions(request, current.UID, current.Version, old.Number)
	if err != nil {
		return err
	}
	form.UID, form.URL, form.Action = current.UID.String(), current.URL, "restore"
	form.Version, form.Button, form.Icon = old.Number, "Restore as a new version", "history"
	form.Consequences = []string{
		fmt.Sprintf("Version %d becomes the configuration in force once more, as version %d.",
			old.Number, current.Version+1),
		"The secret stays the present one: versions have none of their own.",
		"Whether the subscription is active or paused does not change.",
		"It is checked against today's rules first.",
	}
	if !webhook.SameOrigin(old.URL, current.URL) {
		form.NeedsToken = old.Auth == webhook.AuthBearer && current.Auth == webhook.AuthBearer
		form.SecretHeaders = secretNames(old)
	}
	if form.NeedsToken {
		form.Consequences[1] = "Its scheme, host or port is another one: the stored token does not " +
			"move there, and is given anew below."
	}
	if len(form.SecretHeaders) > 0 {
		form.Consequences = append(form.Consequences, "The values of its secret headers do not move "+
			"to another scheme, host or port either.")
	}
	form.MayDropHeaders = len(form.SecretHeaders) > 0 || old.HeadersUnknown
	if form.Partner, err = c.partnerOf(ctx, current); err != nil {
		return err
	}
	form.Diff, err = c.diffRows(request, slices.DeleteFunc(diff.Changes, stays))
	if err != nil {
		return err
	}
	title := "Restore version " + strconv.Itoa(old.Number)
	if form.Frame, err = c.subscriptionFrame(ctx, current, title); err != nil {
		return err
	}
	return render(ctx, status, subscriptions.ActionPage(form))
}

// secretNames are the names of the headers whose values are secret.
func secretNames(v webhook.Version) []string {
	var names []string
	for _, header := range v.Headers {
		if !header.Plain && header.Value != "" {
			names = append(names, header.Name)
		}
	}
	return names
}

// restoreFaults puts a refusal at the fields of the form; false for another error.
func restoreFaults(err error, old webhook.Version) (map[string]string, bool) {
	refusal, ok := errors.AsType[*lending.Error](err)
	if !ok || len(refusal.Details) == 0 {
		return nil, false
	}
	faults := map[string]string{}
	for _, detail := range refusal.Details {
		field, index := detail.Field, 0
		_, err := fmt.Sscanf(field, "headers[%d].value", &index)
		if err == nil && index < len(old.Headers) {
			field = "header-" + old.Headers[index].Name
		} else if field != "secret" {
			return nil, false
		}
		faults[field] = sentence(strings.ReplaceAll(detail.Message, `"secret"`, "The token"))
	}
	return faults, true
}

// choiceOf is what the form of a restore says.
func choiceOf(ctx echo.Context) (webhook.Choice, error) {
	values, err := ctx.FormParams()
	if err != nil {
		return webhook.Choice{}, err
	}
	choice := webhook.Choice{
		Secret: pasted(values.Get("secret")), Reason: values.Get("reason"),
		NoHeaders: values.Get("no_headers") != "",
	}
	choice.Version, _ = strconv.Atoi(values.Get("version")) // 0 is a version that never was
	choice.Base, _ = strconv.Atoi(values.Get("base"))
	names := values["header_name"]
	for i, text := range values["header_value"] {
		if text != "" && i < len(names) {
			choice.Headers = append(choice.Headers, webhook.Header{Name: names[i], Value: text})
		}
	}
	return choice, nil
}

// stays tells whether a restore leaves the setting as it is.
func stays(change webhook.SettingChange) bool {
	return change.Setting == webhook.SettingSecret || change.Setting == webhook.SettingState
}

// restore brings a version back.
func (c *Console) restore(ctx echo.Context) error {
	current, err := c.liveSubscription(ctx)
	if err != nil {
		return err
	}
	choice, err := choiceOf(ctx)
	if err != nil {
		return err
	}
	uid := current.UID.String()
	target := paths.SubscriptionTab(uid, subscriptions.TabVersions)
	var done webhook.Restoration
	_, err = c.act(ctx, func(request context.Context, tx *postgres.Tx) (_ string, err error) {
		done, err = c.Webhooks.Restore(request, tx, current.UID, choice, currentUser(ctx).Email)
		if !done.Secret.IsZero() {
			target = paths.SubscriptionTab(uid, subscriptions.TabSecret)
		}
		if err != nil || done.Subscription.Version == current.Version {
			return target, err
		}
		return target, c.auditSubscription(ctx, tx, operator.Entry{
			Action: "subscription.restore", Subject: current.UID.String(), Reason: choice.Reason,
			Before: subscriptionState(current), After: subscriptionState(done.Subscription),
		})
	})
	if err != nil {
		return c.restoreAgain(ctx, current, choice, err)
	}
	c.leaveNotice(ctx, fmt.Sprintf("Version %d is in force once more.", choice.Version))
	if !done.Secret.IsZero() {
		c.keepSecretOnce(ctx, uid, done.Secret)
	}
	return leadTo(ctx, target)
}

// restoreAgain shows the form of a refused restore with its faults, where they are
// about its fields.
func (c *Console) restoreAgain(
	ctx echo.Context, current webhook.Subscription, choice webhook.Choice, refusal error,
) error {
	old, err := c.version(ctx, current, choice.Version)
	if err != nil {
		return err
	}
	faults, ok := restoreFaults(refusal, old)
	if !ok {
		return refusal
	}
	return c.showRestore(ctx, http.StatusBadRequest, current, old, subscriptions.ActionForm{
		Base: choice.Base, Reason: choice.Reason, Faults: faults,
	})
}

// compareSecret tells whether a pasted value is a secret of the subscription.
func (c *Console) compareSecret(ctx echo.Context) error {
	page, subscription, err := c.subscriptionPageOf(ctx, subscriptions.TabSecret)
	if err != nil {
		return err
	}
	var found webhook.SecretMatch
	err = c.inTx(ctx, func(request context.Context, tx *postgres.Tx) (err error) {
		found, err = c.Webhooks.CompareSecret(request, tx, subscription.UID,
			pasted(ctx.FormValue("candidate")))
		if err != nil {
			return err
		}
		return c.Operators.AuditLimited(request, tx, operator.Entry{
			Actor: currentUser(ctx).Email, Address: ctx.RealIP(),
			Action: "subscription.compare_secret", SubjectKind: "subscription",
			Subject: page.UID, After: map[string]secret.Match{"match": found.Match},
		}, maxComparisons, comparisonWindow)
	})
	status := http.StatusOK
	refusal, refused := errors.AsType[*lending.Error](err)
	switch {
	case refused && refusal.Code == lending.CodeValidation:
		status, page.Secret.Fault = http.StatusBadRequest, "Paste the value that is to be compared."
	case err != nil:
		return err
	default:
		page.Secret.Match = matchNotice(found)
	}
	return c.showSubscription(ctx, status, page, subscription)
}

// pasted is a value without the white space that copying adds; the zero value
// for none.
func pasted(text string) secret.String {
	if text = strings.TrimSpace(text); text == "" {
		return secret.String{}
	}
	return secret.New(text)
}

// matchNotice words the answer to a comparison.
func matchNotice(found webhook.SecretMatch) *ui.Notice {
	switch {
	case found.Match == secret.MatchCurrent:
		return &ui.Notice{
			Tone: ui.Good, Title: "This is the current secret",
			Text: "If the partner's check still fails, look at how it reads the body: the bytes as " +
				"they arrived, before any JSON parser.",
		}
	case found.Match == secret.MatchPrevious && found.PreviousEnded:
		return &ui.Notice{
			Tone: ui.Bad, Title: "This is the previous secret, and its overlap has ended",
			Text: "Nothing is signed with it any more. The partner has to change over to the current one.",
		}
	case found.Match == secret.MatchPrevious:
		return &ui.Notice{
			Tone: ui.Warn, Title: "This is the previous secret",
			Text: "It signs in x-hmac-signature-previous until " +
				value(found.PreviousUntil).UTC().Format("2006-01-02 15:04:05 UTC") +
				". The partner has to change over to the current one by then.",
		}
	}
	return &ui.Notice{
		Tone: ui.Bad, Title: "No match",
		Text: "This is neither the current secret nor the previous one. If the right one is lost, " +
			"rotate it.",
	}
}
