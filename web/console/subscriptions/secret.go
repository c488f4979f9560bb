package subscriptions

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/paths"
	"drawbridge/views/subscriptions"
	"drawbridge/views/ui"
	"drawbridge/web/console/action"
	"drawbridge/web/console/page"
)

// overlaps are the choices for how long a former signing secret goes on signing.
var overlaps = []ui.Option{
	{Value: subscription.DefaultOverlap.String(), Label: "24 hours"},
	{Value: time.Hour.String(), Label: "1 hour"},
	{Value: (7 * 24 * time.Hour).String(), Label: "7 days"},
	{Value: (30 * 24 * time.Hour).String(), Label: "30 days"},
	{Value: time.Duration(0).String(), Label: "None: the present secret stops at once"},
}

// rotate replaces the signing secret and shows the new one once.
func (f *Feature) rotate() action.Spec {
	return action.Spec{
		Path: paths.SubscriptionRotate, Shown: "console.subscription.rotate",
		Sent: "console.subscription.rotated", Role: operator.RoleOperator,
		Confirm: func(ctx echo.Context) (action.Form, error) {
			current, owner, err := f.subscription(ctx)
			if err == nil && current.Auth == sender.AuthNone {
				err = lending.NewError(lending.CodeInvalidState,
					"The subscription has no secret; choose an authentication in its settings first.")
			}
			if err != nil {
				return action.Form{}, err
			}
			var made secret.String
			fields, uid := rotateFields(current), current.UID.String()
			if until := current.PreviousUntil; until != nil && f.DB.Now().Before(*until) {
				fields.Risks = []string{"A rotation is under way. The secret before the present one " +
					"stops signing at once if you rotate again."}
			}
			return action.Form{
				Place: under(current, fields.Title), Fields: fields,
				Page: func(fields ui.Confirmation) templ.Component {
					return subscriptions.Rotate(fields, current, owner)
				},
				Show: func(ctx echo.Context) error {
					f.KeepSecret(ctx, f.Webhooks.Subscriptions.Keys, uid, made)
					return page.Redirect(ctx, fields.Cancel)
				},
				Change: action.Change{
					Done: "Rotated. The next delivery uses the new secret.",
					Do: func(request context.Context, tx *postgres.Tx) (operator.Outcome, error) {
						patch, err := rotation(ctx, current)
						if err != nil {
							return operator.Outcome{}, err
						}
						var changed subscription.Subscription
						changed, made, err = f.Webhooks.Subscriptions.Amend(
							request, tx, current.UID, patch, page.User(ctx).Email)
						if err == nil && made.IsZero() {
							err = lending.Invalid("secret", `"secret" is already in force; nothing was rotated`)
						}
						after := map[string]any{"version": changed.Version}
						if changed.PreviousUntil != nil {
							after["previous_until"] = changed.PreviousUntil
						}
						return did(fields.Cancel, "rotate_secret", current,
								map[string]any{"version": current.Version}, after),
							page.WithLabels(err, map[string]string{"secret": "The secret"})
					},
				},
			}, nil
		},
	}
}

func rotateFields(s subscription.Subscription) ui.Confirmation {
	word := subscriptions.SecretWord(string(s.Auth))
	form := ui.Confirmation{
		Title: "Rotate the secret", Submit: "Rotate",
		Action: paths.To(paths.SubscriptionRotate, s.UID.String()),
		Cancel: paths.SubscriptionTab(s.UID.String(), subscriptions.TabSecret),
		Hidden: []ui.HiddenField{versionField(s)},
		Controls: []ui.Control{
			{Name: "secret_mode", Label: "New " + word},
			{
				Name: "secret", Label: "Agreed " + word, Hint: subscriptions.SecretRule(string(s.Auth)),
				Type: "password", MaxLength: 256, Autocomplete: "off",
			},
		},
	}
	if s.Auth == sender.AuthHMAC {
		form.Controls = append(form.Controls, ui.Control{
			Name: "overlap", Label: "Overlap", Hint: "For how long the present secret signs too.",
			Value: overlaps[0].Value, Options: overlaps,
		})
	}
	return form
}

// rotation returns the patch that the form of a rotation asks for.
func rotation(ctx echo.Context, current subscription.Subscription) (subscription.Patch, error) {
	patch := subscription.Patch{Secret: new(secret.String), Reason: ctx.FormValue("reason")}
	patch.Base, _ = strconv.Atoi(ctx.FormValue("version")) // 0 rotates any version
	var problems lending.FieldErrors
	if ctx.FormValue("secret_mode") == secretPaste {
		if *patch.Secret = pasted(ctx.FormValue("secret")); patch.Secret.IsZero() {
			problems.Add("secret", "Type the secret that was agreed, or let one be generated.")
		}
	}
	overlap := ctx.FormValue("overlap")
	patch.Overlap, _ = time.ParseDuration(overlap) // the choices of the list can be parsed
	if current.Auth == sender.AuthHMAC && !slices.ContainsFunc(overlaps,
		func(o ui.Option) bool { return o.Value == overlap }) {
		problems.Add("overlap", "Choose one of the offered lengths.")
	}
	return patch, problems.Err()
}

// compareSecret checks whether a pasted value is a secret of the subscription.
func (f *Feature) compareSecret(ctx echo.Context) error {
	uid, err := page.UID(ctx)
	if err != nil {
		return err
	}
	var found subscription.SecretMatch
	err = f.ReadAudited(ctx, func(
		request context.Context, tx *postgres.Tx,
	) (_ operator.Outcome, err error) {
		found, err = f.Webhooks.Subscriptions.CompareSecret(request, tx, uid,
			pasted(ctx.FormValue("candidate")))
		if err != nil {
			return operator.Outcome{}, err
		}
		return operator.Did("", action.Compared(operator.Entry{
			Action: "subscription.compare_secret", SubjectKind: "subscription",
			Subject: uid.String(), After: map[string]secret.Match{"match": found.Match},
		})), nil
	})
	refusal, refused := errors.AsType[*lending.Error](err)
	switch {
	case refused && refusal.Code == lending.CodeValidation:
		return f.showTab(ctx, http.StatusBadRequest, subscriptions.TabSecret,
			subscriptions.SecretTab{Problem: "Paste the value that is to be compared."})
	case err != nil:
		return err
	}
	return f.showTab(ctx, http.StatusOK, subscriptions.TabSecret,
		subscriptions.SecretTab{Match: new(matchNotice(ctx.Request().Context(), found))})
}

// matchNotice says whether a pasted value is one of the secrets, and what to do about it.
func matchNotice(ctx context.Context, found subscription.SecretMatch) ui.Notice {
	switch {
	case found.Match == secret.MatchCurrent:
		return ui.Notice{
			Tone: ui.Good, Title: "This is the current secret",
			Text: "If the partner's check still fails, look at how it reads the body: the bytes as " +
				"they arrived, before any JSON parser.",
		}
	case found.Match == secret.MatchPrevious && found.PreviousEnded:
		return ui.Notice{
			Tone: ui.Bad, Title: "This is the previous secret, and its overlap has ended",
			Text: "Nothing is signed with it any more. The partner has to change over to the current one.",
		}
	case found.Match == secret.MatchPrevious:
		return ui.Notice{
			Tone: ui.Warn, Title: "This is the previous secret",
			Text: "It signs in x-hmac-signature-previous until " +
				ui.Absolute(ctx, ui.Value(found.PreviousUntil)) +
				". The partner has to change over to the current one by then.",
		}
	default:
		return ui.Notice{
			Tone: ui.Bad, Title: "No match",
			Text: "This is neither the current secret nor the previous one. If the right one is lost, " +
				"rotate it.",
		}
	}
}
