package bulk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	resend "drawbridge/internal/webhook/bulk"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/bulk"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/action"
	"drawbridge/web/console/page"
)

// draftForm holds the input on the page of a draft, and its errors.
type draftForm struct {
	Status        int
	Reason, Count string
	// Options are the refused options, with the pace as typed; nil means the draft's own.
	Options *resend.Options
	Pace    string
	Errors  map[string]string
	Error   string
}

// showDraft shows what confirming the draft would do now.
func (f *Feature) showDraft(ctx echo.Context, of resend.Resend, form draftForm) error {
	plan, err := f.Webhooks.Bulk.Plan(ctx.Request().Context(), of.UID)
	if err != nil {
		return err
	}
	of.Reason = form.Reason
	shown := bulk.Draft{
		Resend: of, Plan: plan, Count: form.Count, Errors: form.Errors, Error: form.Error,
		Seen:       action.Seen(described(of.Options, targetsOf(plan))),
		Confirming: ctx.QueryParam("confirm") != "" || len(form.Errors) > 0 && form.Errors["pace"] == "",
		Typed:      of.Options, Pace: ui.Number(of.Options.Pace),
	}
	if form.Options != nil {
		shown.Typed, shown.Pace = *form.Options, form.Pace
	}
	return f.Show(ctx, form.Status, place.Under(paths.Bulks, bulk.Title(of.Scope)), bulk.PlanOf(shown))
}

// amend changes the options of a draft and shows its plan again.
func (f *Feature) amend(ctx echo.Context) error {
	uid, err := page.UID(ctx)
	if err != nil {
		return err
	}
	// A text that is no number becomes 0, which the service refuses.
	typed := strings.TrimSpace(ctx.FormValue("pace"))
	pace, _ := strconv.Atoi(typed)
	options := resend.Options{
		Pace: pace, SkipNewer: ctx.FormValue("skip_newer") != "",
		SkipDelivered: ctx.FormValue("skip_delivered") != "",
	}
	outcome, err := f.Commit(ctx, change("options", uid,
		func(request context.Context, tx *postgres.Tx, entry *operator.Entry) error {
			entry.After = options
			return f.Webhooks.Bulk.Amend(request, tx, uid, options)
		}))
	if err != nil {
		return f.refuseDraft(ctx, uid, err, draftForm{Options: &options, Pace: typed})
	}
	return page.Redirect(ctx, outcome.Target)
}

// targetsOf returns the targets of a plan as they would be frozen.
func targetsOf(plan resend.Plan) []resend.Target {
	targets := make([]resend.Target, 0, len(plan.Targets))
	for _, target := range plan.Targets {
		targets = append(targets, resend.Target{
			SubscriptionUID: target.SubscriptionUID, Endpoint: target.Endpoint,
			Counts: resend.Counts{Waiting: target.Total},
		})
	}
	slices.SortFunc(targets, func(a, b resend.Target) int {
		return bytes.Compare(a.SubscriptionUID[:], b.SubscriptionUID[:])
	})
	return targets
}

// described says what a form showed of a draft: how it is sent, and how much goes where.
func described(options resend.Options, targets []resend.Target) string {
	words := []string{fmt.Sprintf("at most %d a second to one endpoint", options.Pace)}
	for _, option := range []struct {
		on   bool
		what string
	}{
		{options.SkipNewer, "those with a newer delivered event"},
		{options.SkipDelivered, "what was delivered already"},
	} {
		verb := ui.If(option.on, "without ", "with ")
		words = append(words, verb+option.what)
	}
	for _, target := range targets {
		if total := target.Total(); total > 0 { // otherwise all of it is left out
			words = append(words, fmt.Sprintf("%d to %s", total, target.Label()))
		}
	}
	return strings.Join(words, "; ")
}

// confirm starts sending what the user was shown.
func (f *Feature) confirm(ctx echo.Context) error {
	uid, err := page.UID(ctx)
	if err != nil {
		return err
	}
	form := draftForm{Reason: ctx.FormValue("reason"), Count: ctx.FormValue("count")}
	planned, err := strconv.Atoi(ctx.FormValue("planned"))
	if err != nil {
		return lending.Invalid("planned", `"planned" must be the number that the page showed`)
	}
	if planned > resend.TypedAbove {
		typed, err := strconv.Atoi(strings.ReplaceAll(strings.TrimSpace(form.Count), ",", ""))
		if err != nil || typed != planned {
			return f.refuseDraft(ctx, uid, lending.Invalid("count",
				"type %s, the number of deliveries, to confirm", ui.Number(planned)), form)
		}
	}
	by := page.User(ctx).Email
	outcome, err := f.Commit(ctx, change("confirm", uid,
		func(request context.Context, tx *postgres.Tx, entry *operator.Entry) error {
			total, err := f.Webhooks.Bulk.Confirm(request, tx, uid, resend.Consent{
				By: by, Reason: form.Reason, Count: planned,
				Agree: func(options resend.Options, targets []resend.Target) error {
					now := described(options, targets)
					if seen := ctx.FormValue(action.SeenField); seen != "" && seen != now {
						return action.Stale(seen, now)
					}
					return nil
				},
			})
			entry.After = map[string]any{"deliveries": total}
			return err
		}))
	if err != nil {
		return f.refuseDraft(ctx, uid, err, form)
	}
	return page.Redirect(ctx, outcome.Target)
}

// refuseDraft shows the plan again with the input and its errors. If the re-send is no
// longer a draft, it redirects to its page.
func (f *Feature) refuseDraft(
	ctx echo.Context, uid uuid.UUID, refused error, form draftForm,
) error {
	code := lending.ErrorCode(refused)
	if code != lending.CodeValidation && code != lending.CodeInvalidState {
		return refused
	}
	found, err := f.Webhooks.Bulk.Get(ctx.Request().Context(), uid)
	if err != nil {
		return err
	}
	if found.State != resend.StateDraft {
		f.LeaveNotice(ctx, page.Sentence(refused.Error()))
		return page.Redirect(ctx, paths.To(paths.Bulk, uid.String()))
	}
	form.Status, form.Errors = f.Status(code), problems(refused)
	if len(form.Errors) == 0 {
		form.Error = page.Sentence(refused.Error())
	}
	return f.showDraft(ctx, found, form)
}

// formLabels maps the names of the forms' fields to their labels, as written within a sentence.
var formLabels = map[string]string{
	"reason": "The reason", "count": "The count", "pace": "The pace", "partner": "The partner",
	"since": "The beginning", "until": "The end",
}

// problems maps a refusal's fields to their messages, in the words of the form.
func problems(err error) map[string]string {
	found := map[string]string{}
	refusal, ok := errors.AsType[*lending.Error](page.WithLabels(err, formLabels))
	if ok && refusal.Code == lending.CodeValidation {
		for _, detail := range refusal.Details {
			found[detail.Field] = page.Sentence(detail.Message)
		}
	}
	return found
}
