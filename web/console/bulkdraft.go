package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
	bulkview "drawbridge/views/bulk"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// draftForm is what was typed on the page of a draft, and what was wrong.
type draftForm struct {
	Status        int
	Reason, Count string
	Faults        map[string]string
	Fault         string
}

// showDraft shows what confirming a draft would do now.
func (c *Console) showDraft(ctx echo.Context, bulk webhook.Bulk, form draftForm) error {
	request := ctx.Request().Context()
	plan, err := c.Webhooks.PlanBulk(request, bulk.UID)
	if err != nil {
		return err
	}
	page := bulkview.Draft{
		Facts: bulkFactsOf(request, bulk), Total: plan.Total, Skips: plan.Skips(),
		Takes: plan.Takes(bulk.Options.Pace), Lanes: planLanes(plan), Risks: bulkRisks(plan.Risks),
		Typed: plan.Total > webhook.TypedAbove, Count: form.Count, Faults: form.Faults,
		Fault: form.Fault, Oldest: plan.Oldest, Newest: plan.Newest, MaxPace: webhook.MaxPace,
		Asking: ctx.QueryParam("confirm") != "" || len(form.Faults) > 0 && form.Faults["pace"] == "",
	}
	page.Reason = form.Reason
	for reason, count := range plan.Skipped {
		page.Skipped = append(page.Skipped, bulkview.SkipRow{Reason: string(reason), Count: count})
	}
	slices.SortFunc(page.Skipped, func(a, b bulkview.SkipRow) int {
		return 2*(b.Count-a.Count) + strings.Compare(a.Reason, b.Reason)
	})
	if page.Frame, err = c.bulkFrame(ctx, page.What); err != nil {
		return err
	}
	page.Notice = c.takeNotice(ctx)
	return render(ctx, form.Status, bulkview.DraftPage(page))
}

func planLanes(plan webhook.BulkPlan) []bulkview.LaneRow {
	rows := make([]bulkview.LaneRow, 0, len(plan.Lanes))
	for _, lane := range plan.Lanes {
		row := bulkview.LaneRow{
			UID: lane.SubscriptionUID.String(), URL: lane.URL, State: string(lane.State),
			Total: lane.Total,
		}
		for kind, count := range lane.Events {
			row.Events = append(row.Events, fmt.Sprintf("%s: %s", kind, ui.Number(count)))
		}
		slices.Sort(row.Events)
		rows = append(rows, row)
	}
	return rows
}

// bulkRisks words what somebody should know before confirming.
func bulkRisks(risks webhook.BulkRisks) []bulkview.Risk {
	var found []bulkview.Risk
	for _, risk := range []struct {
		count     int
		one, many string // the verb with what it needs
		rest      string
	}{
		{
			risks.Delivered, "was delivered already: the partner gets it again.",
			"were delivered already: the partner gets them again.", "",
		},
		{risks.Newer, "was overtaken", "were overtaken", ": a newer event of the same application " +
			"was delivered, and the partner would get the older one after it."},
		{
			risks.Unknown, "may have arrived", "may have arrived",
			": the outcome of an attempt is unknown.",
		},
		{risks.Changed, "was tried", "were tried", " under an older configuration; the re-send " +
			"uses the subscription as it is now."},
		{risks.Failing, "goes", "go", " to an endpoint that is failing at present."},
		{
			risks.Paused, "goes to a paused subscription, and waits",
			"go to a paused subscription, and wait",
			" until it is resumed.",
		},
	} {
		switch {
		case risk.count == 1:
			found = append(found, bulkview.Risk{Count: 1, Text: risk.one + risk.rest})
		case risk.count > 1:
			found = append(found, bulkview.Risk{Count: risk.count, Text: risk.many + risk.rest})
		}
	}
	return found
}

// amendBulk changes the options of a draft and shows its plan anew.
func (c *Console) amendBulk(ctx echo.Context) error {
	uid, err := pathUID(ctx)
	if err != nil {
		return err
	}
	// What is no number is none, which the service refuses.
	pace, _ := strconv.Atoi(strings.TrimSpace(ctx.FormValue("pace")))
	options := webhook.BulkOptions{
		Pace: pace, SkipNewer: ctx.FormValue("skip_newer") != "",
		SkipDelivered: ctx.FormValue("skip_delivered") != "",
	}
	target, err := c.act(ctx, func(request context.Context, tx *postgres.Tx) (string, error) {
		if err := c.Webhooks.AmendBulk(request, tx, uid, options); err != nil {
			return "", err
		}
		return paths.To(paths.Bulk, uid.String()),
			c.auditBulk(ctx, tx, uid, "options", operator.Entry{After: options})
	})
	if err != nil {
		return c.refuseDraft(ctx, uid, err, draftForm{})
	}
	return ctx.Redirect(http.StatusSeeOther, target)
}

// confirmBulk begins to send what the person was shown.
func (c *Console) confirmBulk(ctx echo.Context) error {
	uid, err := pathUID(ctx)
	if err != nil {
		return err
	}
	form := draftForm{Reason: ctx.FormValue("reason"), Count: ctx.FormValue("count")}
	planned, err := strconv.Atoi(ctx.FormValue("planned"))
	if err != nil {
		return lending.Invalid("planned", `"planned" must be the count that the page showed`)
	}
	if planned > webhook.TypedAbove {
		typed, err := strconv.Atoi(strings.ReplaceAll(strings.TrimSpace(form.Count), ",", ""))
		if err != nil || typed != planned {
			return c.refuseDraft(ctx, uid, lending.Invalid("count",
				"type %s, the count of deliveries, to confirm", ui.Number(planned)), form)
		}
	}
	target, err := c.act(ctx, func(request context.Context, tx *postgres.Tx) (string, error) {
		total, err := c.Webhooks.ConfirmBulk(request, tx, uid, webhook.BulkConsent{
			By: currentUser(ctx).Email, Reason: form.Reason, Count: planned,
		})
		if err != nil {
			return "", err
		}
		return paths.To(paths.Bulk, uid.String()), c.auditBulk(ctx, tx, uid, "confirm", operator.Entry{
			Reason: form.Reason, After: map[string]any{"deliveries": total},
		})
	})
	if err != nil {
		return c.refuseDraft(ctx, uid, err, form)
	}
	return ctx.Redirect(http.StatusSeeOther, target)
}

// refuseDraft shows the plan again with what was typed and what was wrong with
// it. A draft that is none any more leads to what became of it.
func (c *Console) refuseDraft(
	ctx echo.Context, uid uuid.UUID, refused error, form draftForm,
) error {
	code := lending.ErrorCode(refused)
	if code != lending.CodeValidation && code != lending.CodeInvalidState {
		return refused
	}
	bulk, err := c.Webhooks.Bulk(ctx.Request().Context(), uid)
	if err != nil {
		return err
	}
	if bulk.State != webhook.BulkDraft {
		c.leaveNotice(ctx, sentence(refused.Error()))
		return ctx.Redirect(http.StatusSeeOther, paths.To(paths.Bulk, uid.String()))
	}
	form.Status, form.Faults = c.Status(code), formFaults(refused)
	if len(form.Faults) == 0 {
		form.Fault = sentence(refused.Error())
	}
	return c.showDraft(ctx, bulk, form)
}

// asRefusal returns the refusal in an error's chain.
func asRefusal(err error) (*lending.Error, bool) { return errors.AsType[*lending.Error](err) }
