package console

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/ui"
)

// maxReason bounds the reason that a person gives, in characters.
const maxReason = 500

// commitment is what a form does: in one transaction, with its audit entry.
type commitment struct {
	// do returns what the audit log is told, and where the result is to be seen.
	// An entry without an action is none: nothing changed.
	do func(ctx context.Context, tx *postgres.Tx) (operator.Entry, string, error)
	// done is said on the page that comes next, unchanged when nothing changed.
	done, unchanged string
}

// commit does a change at most once for each form and keeps it in the audit log,
// both or neither. It returns the page that comes next.
func (c *Console) commit(ctx echo.Context, change commitment) (target string, err error) {
	var faults lending.Faults
	reason := strings.TrimSpace(ctx.FormValue("reason"))
	if reason != "" {
		reason = faults.Text("reason", reason, maxReason)
	}
	if err := faults.Err(); err != nil {
		return "", err
	}
	user, said := currentUser(ctx), ""
	target, err = c.act(ctx, func(request context.Context, tx *postgres.Tx) (string, error) {
		entry, target, err := change.do(request, tx)
		if err != nil || entry.Action == "" {
			said = change.unchanged
			return target, err
		}
		said = change.done
		entry.Actor, entry.Address, entry.Reason = user.Email, ctx.RealIP(), reason
		return target, c.Operators.Audit(request, tx, entry)
	})
	if err == nil && said != "" {
		c.leaveNotice(ctx, said)
	}
	return target, err
}

// spot is where a form stands among the pages.
type spot struct {
	section ui.Section
	crumbs  []ui.Crumb
}

// showAsk shows a form: on a page of its own, or in a dialog when a script asks.
func (c *Console) showAsk(ctx echo.Context, status int, at spot, form ui.AskForm) error {
	if isFragment(ctx.Request()) {
		return render(ctx, status, ui.AskDialog(form))
	}
	frame, err := c.frame(ctx, at.section, form.Title,
		append(at.crumbs, ui.Crumb{Label: form.Title})...)
	if err != nil {
		return err
	}
	return render(ctx, status, ui.AskPage(frame, form))
}

// answerAsk does what a form asks for and leads on, or shows the form again with
// what is wrong with it.
func (c *Console) answerAsk(
	ctx echo.Context, at spot, form ui.AskForm, change commitment,
) error {
	target, err := c.commit(ctx, change)
	if err == nil {
		return ctx.Redirect(http.StatusSeeOther, target)
	}
	return c.askAgain(ctx, at, form, err)
}

// askAgain shows a form that was refused, with what was typed and what is wrong.
// What is no refusal of the form is returned.
func (c *Console) askAgain(ctx echo.Context, at spot, form ui.AskForm, err error) error {
	refusal, ok := errors.AsType[*lending.Error](err)
	if !ok || refusal.Code == lending.CodeNotFound {
		return err
	}
	form = refused(form, refusal)
	form.Reason = ctx.FormValue("reason")
	return c.showAsk(ctx, c.Status(refusal.Code), at, form)
}

// refused puts each fault beside its field, in the form's words; what has no
// field there stands over the form.
func refused(form ui.AskForm, refusal *lending.Error) ui.AskForm {
	rest := []string{}
	for _, detail := range refusal.Details {
		placed := false
		for i, control := range form.Controls {
			if control.Name != detail.Field || control.Kind == ui.ControlHeading {
				continue
			}
			message := strings.ReplaceAll(detail.Message, `"`+detail.Field+`"`,
				strings.ToLower(control.Label[:1])+control.Label[1:])
			form.Controls[i].Fault = strings.TrimSpace(control.Fault + " " + sentence(message))
			placed = true
		}
		if !placed {
			rest = append(rest, sentence(detail.Message))
		}
	}
	if len(refusal.Details) == 0 {
		rest = append(rest, sentence(refusal.Message))
	}
	form.Fault = strings.Join(rest, " ")
	return form
}

// typed fills a form's controls with what was sent.
func typed(ctx echo.Context, form ui.AskForm) ui.AskForm {
	values, err := ctx.FormParams()
	if err != nil {
		return form // the guard has read the form already: this cannot fail
	}
	for i, control := range form.Controls {
		switch control.Kind {
		case ui.ControlChecks:
			form.Controls[i].Values = values[control.Name]
		case ui.ControlHeading:
		default:
			form.Controls[i].Value = values.Get(control.Name)
		}
	}
	form.Reason = values.Get("reason")
	return form
}

// renamed gives the faults of a field another name, where a form calls it so.
func renamed(err error, from, to string) error {
	refusal, ok := errors.AsType[*lending.Error](err)
	if !ok {
		return err
	}
	copied := *refusal
	copied.Details = nil
	for _, detail := range refusal.Details {
		if detail.Field == from {
			detail.Field = to
			detail.Message = strings.ReplaceAll(detail.Message, `"`+from+`"`, `"`+to+`"`)
		}
		copied.Details = append(copied.Details, detail)
	}
	return &copied
}

// formRefusal returns the refusal in an error that a form can show.
func formRefusal(err error) (*lending.Error, bool) {
	refusal, ok := errors.AsType[*lending.Error](err)
	return refusal, ok && refusal.Code != lending.CodeNotFound
}
