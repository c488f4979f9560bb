package applications

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/action"
	"drawbridge/web/console/page"
)

// change is one kind of change of an application.
type change struct {
	// action is its name in the audit log.
	action string
	// confirm returns its form. An error says why the change is not possible now.
	confirm func(changing) (changeForm, error)
	// basis describes the state that the change and its stated effects depend on. The form carries
	// it; if it differs when the form is sent, the difference is reported and nothing is changed.
	basis func(changing) string
	// ofTask means that the change concerns one of the application's tasks.
	ofTask bool
}

// changes are all kinds of changes, by the last part of their address.
var changes = map[string]change{
	"status": {
		action: "application.status", confirm: changing.confirmStatus,
		basis: func(c changing) string { return c.standing() + c.opening() },
	},
	"decision": {
		action: "application.decide", confirm: changing.confirmDecision,
		basis: func(c changing) string {
			return c.standing() + "; " + ui.Plural(len(c.now.Offers), "offer", "offers")
		},
	},
	"accept": {
		action: "application.accept_offer", confirm: changing.confirmAcceptance,
		basis: changing.offers,
	},
	"document": {
		action: "application.document", confirm: changing.confirmDocument, basis: changing.documents,
	},
	// The form's token keeps a task from being created twice.
	"task": {
		action: "task.create", confirm: changing.confirmTask, basis: changing.communications,
	},
	"task-status": {
		action: "task.status", confirm: changing.confirmTaskStatus, ofTask: true,
		basis: func(c changing) string { return string(c.now.Task.Status) },
	},
	"funding": {
		action: "draw.status", confirm: changing.confirmFunding,
		basis: func(c changing) string { // the funding status of the draw
			if c.now.Loan != nil {
				for _, draw := range c.now.Loan.Disbursements {
					if strconv.FormatInt(draw.ID, 10) == c.get("draw") {
						return string(draw.Status)
					}
				}
			}
			return ""
		},
	},
	"amount": {action: "application.amount", confirm: changing.confirmAmount, basis: changing.offers},
	"terms":  {action: "application.terms", confirm: changing.confirmTerms, basis: changing.offers},
}

// changing is a requested change and the current state.
type changing struct {
	*Feature

	uid uuid.UUID
	// back is where the user goes after the change, or on cancelling.
	back string
	// get reads a parameter of the change from the form or the address.
	get func(name string) string
	// now is the state when the form is built, and the locked state when it acts.
	now       *application.Standing
	interests map[lending.EventKind]subscription.Interest
	// products returns the products that may be offered.
	products func() ([]lending.Product, error)
	// sent means that the form was submitted, not requested.
	sent bool
	// draw reads a draw with its funding history.
	draw func(id int64) (loan.Disbursement, error)
	// clock formats a time for the reader.
	clock func(at time.Time) string
}

// changeForm is the form of a change, and what it does.
type changeForm struct {
	// button is the label of the link to the form, and note says beside it what the change causes.
	button, note string
	form         ui.Confirmation
	// after is the new state in the audit log, done the notice after the change.
	after map[string]any
	done  string
	// overtaken, unless nil, refuses the submitted form: meanwhile the same change was made
	// with other details.
	overtaken error
	// do makes the change; it returns false if there was nothing to change.
	do func(ctx context.Context, tx *postgres.Tx, by application.Caller) (changed bool, err error)
}

// change changes an application as its form says, unless the state that the form showed has
// changed.
func (f *Feature) change() action.Spec {
	return action.Spec{
		Path: paths.ApplicationChange, Shown: "console.application.change",
		Sent: "console.application.change.submit", Role: operator.RoleOperator,
		Confirm: func(ctx echo.Context) (action.Form, error) {
			uid, err := page.UID(ctx)
			if err != nil {
				return action.Form{}, err
			}
			name, path := ctx.Param("change"), paths.To(paths.Application, uid.String())
			c := changing{Feature: f, uid: uid, back: cameFrom(ctx, path), get: func(name string) string {
				return strings.TrimSpace(ctx.FormValue(name))
			}}
			if name == "status" && c.get("to") == "" {
				return action.Form{}, action.Unneeded(
					"Nothing was changed: choose the status that it moves to below.", path)
			}
			change, known := changes[name]
			if !known {
				return action.Form{}, lending.NewError(lending.CodeNotFound,
					"there is no change called %.40q", name)
			}
			summary, err := f.Applications.Summary(ctx.Request().Context(), uid)
			if err != nil {
				return action.Form{}, err
			}
			form, err := c.form(ctx, change, summary)
			if err != nil {
				return action.Form{}, err
			}
			form.Fields.About = about(summary)
			form.Fields.Action = paths.To(paths.ApplicationChange, uid.String(), name)
			form.Place = placeOf(summary).Under(path, "")
			return form, nil
		},
	}
}

// form returns the form of a change in the current state.
func (c changing) form(
	ctx echo.Context, change change, summary application.Summary,
) (form action.Form, err error) {
	request, task := ctx.Request().Context(), uuid.Nil
	if change.ofTask {
		if task, err = uuid.Parse(c.get("task")); err != nil {
			return form, lending.NewError(lending.CodeNotFound, "%.60q is not the id of a task",
				c.get("task"))
		}
	}
	c.products = func() ([]lending.Product, error) { return c.Applications.ActiveProducts(request) }
	c.sent = page.IsSent(ctx)
	c.draw = func(id int64) (loan.Disbursement, error) { return c.Loans.Draw(request, id) }
	c.clock = func(at time.Time) string { return ui.Absolute(request, at) }
	c.interests, err = c.Webhooks.Subscriptions.Interests(request, summary.PartnerUID,
		summary.MerchantUID)
	if err != nil {
		return form, err
	}
	now, err := c.Applications.Read(request, c.uid, task)
	if err != nil {
		return form, err
	}
	c.now = &now
	confirmation, err := change.confirm(c)
	if err != nil {
		return form, err
	}
	basis := change.basis(c)
	form.Fields, form.Done = confirmation.form, confirmation.done
	form.Unchanged = "Nothing was changed."
	form.Fields.Cancel = c.back
	form.Fields.Hidden = append(form.Fields.Hidden, action.Seen(basis),
		ui.HiddenField{Name: "back", Value: c.back})
	seen := cmp.Or(ctx.FormValue(action.SeenField), basis)
	by := application.Caller{Name: page.User(ctx).Email}
	form.Do = func(ctx context.Context, tx *postgres.Tx) (outcome operator.Outcome, err error) {
		if confirmation.overtaken != nil {
			return outcome, confirmation.overtaken
		}
		if *c.now, err = c.Applications.ReadLocked(ctx, tx, c.uid, task); err != nil {
			return outcome, err
		}
		if now := change.basis(c); now != seen {
			return outcome, action.Stale(seen, now)
		}
		outcome.Target = c.back
		changed, err := confirmation.do(ctx, tx, by)
		if err != nil || !changed {
			return outcome, err
		}
		return operator.Did(outcome.Target, operator.Entry{
			Action: change.action, SubjectKind: "application", Subject: c.uid.String(),
			Before: map[string]any{"seen": seen}, After: confirmation.after,
		}), nil
	}
	return form, nil
}

// cameFrom returns the page where the form was opened: the draw desk with its filter, or fallback.
func cameFrom(ctx echo.Context, fallback string) string {
	back := ctx.FormValue("back")
	if from, err := url.Parse(ctx.Request().Referer()); err == nil && !page.IsSent(ctx) {
		back = from.RequestURI()
	}
	if back == paths.Desk || strings.HasPrefix(back, paths.Desk+"?") {
		return page.SafeNext(back)
	}
	return fallback
}

// standing describes the state that most effects depend on: the application's status, the
// selected product, and whether the borrower gets e-mails.
func (c changing) standing() string {
	return fmt.Sprintf("%s; %s selected; %s", c.now.Status,
		cmp.Or(c.now.SelectedProductCode, "nothing"), c.communications())
}

// communications describes whether the borrower gets e-mails.
func (c changing) communications() string {
	return "communications " + string(c.now.Communications)
}

// tells says which event a change causes and who receives it.
func (c changing) tells(of lending.EventKind) string {
	kind := fmt.Sprintf("“%s” (%s)", of.Title(), of)
	interest := c.interests[of]
	subscriptions := ui.Plural(interest.Subscriptions, "subscription", "subscriptions")
	switch {
	case interest.Subscriptions == 0:
		return fmt.Sprintf("Records %s; no subscription gets it.", kind)
	case interest.Paused > 0:
		return fmt.Sprintf("Sends %s to %s, of which %d paused and waiting.", kind, subscriptions,
			interest.Paused)
	}
	return fmt.Sprintf("Sends %s to %s.", kind, subscriptions)
}

// mails says which e-mail the borrower receives.
func (c changing) mails(kind string) string {
	if c.now.Communications == lending.CommunicationsPaused {
		return fmt.Sprintf("The %s e-mail is not sent: communications are paused until an offer is "+
			"accepted. The e-mail log shows it as suppressed.", kind)
	}
	return fmt.Sprintf("The borrower gets the %s e-mail.", kind)
}

// notNow refuses a change that is not possible in the current state.
func notNow(format string, args ...any) error {
	return lending.NewError(lending.CodeInvalidState, format, args...)
}

// nothingToDo ends a change whose result is already in place and redirects back.
func (c changing) nothingToDo(format string, args ...any) error {
	return action.Unneeded(page.Sentence(fmt.Sprintf(format, args...)), c.back)
}

// chooseOne refuses an address with an unknown choice, in the words of the form.
func chooseOne(err error, choice string) error {
	return lending.NewError(lending.CodeValidation, "%s", choice).WithCause(err)
}
