package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// The names of the changes of an application, as their addresses have them.
const (
	changeStatus   = "status"
	changeDecision = "decision"
	changeAccept   = "accept"
	changeDocument = "document"
	changeNewTask  = "task"
	changeTask     = "task-status"
	changeFunding  = "funding"
	changeAmount   = "amount"
	changeTerms    = "terms"
)

// state is an application with what its changes depend on.
type state struct {
	app application.Application
	// loan is nil until it opens.
	loan *lending.Loan
	// task is the task that the change is about, if it is about one.
	task application.Task
}

// appChange is one change of an application: how it is asked for, and what it
// does.
type appChange struct {
	form ui.AskForm
	// seen writes the part of a state that the change rests on. The form carries
	// it, and what differs by then is told instead of changed.
	seen func(state) string
	// do changes the application; before and after are for the audit log.
	do func(ctx context.Context, tx *postgres.Tx, by application.Caller) error
	// action names the change in the audit log, after what it came to.
	action string
	after  map[string]any
	// done is said once it is done.
	done string
}

// changeBuilders make the form of each change. An error says why the change is
// not possible now.
var changeBuilders = map[string]func(a asked) (appChange, error){
	changeStatus:   statusChange,
	changeDecision: decisionChange,
	changeAccept:   acceptChange,
	changeDocument: documentChange,
	changeNewTask:  newTaskChange,
	changeTask:     taskChange,
	changeFunding:  fundingChange,
	changeAmount:   amountChange,
	changeTerms:    termsChange,
}

// asked is what somebody wants to change, and how things stand.
type asked struct {
	*Console

	ctx       echo.Context
	uid       uuid.UUID
	now       state
	interests map[lending.EventKind]webhook.Interest
}

// get reads what the change is about from the form or the address.
func (a asked) get(name string) string { return strings.TrimSpace(a.ctx.FormValue(name)) }

// changeForm asks before an application is changed.
func (c *Console) changeForm(ctx echo.Context) error {
	if lacksTarget(ctx) {
		return c.offerTargets(ctx)
	}
	wanted, change, err := c.askedChange(ctx)
	if err != nil {
		return err
	}
	return c.showAsk(ctx, http.StatusOK, wanted.spot(), change.form)
}

// lacksTarget tells that an application is to move, but not where to.
func lacksTarget(ctx echo.Context) bool {
	return ctx.Param("change") == changeStatus && strings.TrimSpace(ctx.FormValue("to")) == ""
}

// offerTargets leads to the application's page, which has a button for each
// status that may follow.
func (c *Console) offerTargets(ctx echo.Context) error {
	uid, err := pathUID(ctx)
	if err != nil {
		return err
	}
	c.leaveNotice(ctx, "Nothing was changed: choose the status that it moves to below.")
	return ctx.Redirect(http.StatusSeeOther, paths.To(paths.Application, uid.String()))
}

// changeApplication changes an application as its form said, unless what the
// form showed is no longer so.
func (c *Console) changeApplication(ctx echo.Context) error {
	if lacksTarget(ctx) {
		return c.offerTargets(ctx)
	}
	wanted, change, err := c.askedChange(ctx)
	if err != nil {
		return err
	}
	form, path := typed(ctx, change.form), paths.To(paths.Application, wanted.uid.String())
	seen := ctx.FormValue("seen")
	by := application.Caller{Name: currentUser(ctx).Email}
	return c.answerAsk(ctx, wanted.spot(), form, commitment{
		done: change.done,
		do: func(request context.Context, tx *postgres.Tx) (operator.Entry, string, error) {
			before, err := c.readState(request, tx, wanted, true)
			if err != nil {
				return operator.Entry{}, "", err
			}
			if now := change.seen(before); now != seen {
				return operator.Entry{}, "", lending.NewError(lending.CodeInvalidState,
					"This changed while you were looking: it was %s and is %s now. "+
						"Look at it again before you decide", orNothing(seen), orNothing(now))
			}
			if err := change.do(request, tx, by); err != nil {
				return operator.Entry{}, "", err
			}
			return operator.Entry{
				Action: change.action, SubjectKind: "application", Subject: wanted.uid.String(),
				Before: map[string]any{"seen": seen}, After: change.after,
			}, path, nil
		},
	})
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}

// askedChange reads which change of which application is wanted, and how it is
// asked for now.
func (c *Console) askedChange(ctx echo.Context) (asked, appChange, error) {
	uid, err := pathUID(ctx)
	if err != nil {
		return asked{}, appChange{}, err
	}
	build, known := changeBuilders[ctx.Param("change")]
	if !known {
		return asked{}, appChange{}, lending.NewError(lending.CodeNotFound,
			"there is no change called %.40q", ctx.Param("change"))
	}
	request := ctx.Request().Context()
	wanted := asked{Console: c, ctx: ctx, uid: uid}
	summary, err := c.Applications.Summary(request, uid)
	if err != nil {
		return asked{}, appChange{}, err
	}
	wanted.interests, err = c.Webhooks.Interests(request, summary.PartnerUID, summary.MerchantUID)
	if err != nil {
		return asked{}, appChange{}, err
	}
	err = c.inTx(ctx, func(request context.Context, tx *postgres.Tx) error {
		wanted.now, err = c.readState(request, tx, wanted, false)
		return err
	})
	if err != nil {
		return asked{}, appChange{}, err
	}
	change, err := build(wanted)
	if err != nil {
		return wanted, appChange{}, err
	}
	path := paths.To(paths.Application, uid.String())
	change.form.About = aboutApplication(summary)
	change.form.Action = path + "/change/" + url.PathEscape(ctx.Param("change"))
	change.form.Cancel = path
	change.form.Hidden = append(change.form.Hidden, ui.HiddenField{
		Name: "seen", Value: change.seen(wanted.now),
	})
	return wanted, change, nil
}

// readState loads what a change depends on; with lock it stays as it is.
func (c *Console) readState(
	ctx context.Context, tx *postgres.Tx, wanted asked, lock bool,
) (state, error) {
	app, err := c.Applications.Read(ctx, tx, wanted.uid, lock)
	if err != nil {
		return state{}, err
	}
	found := state{app: app}
	if found.loan, err = c.Loans.Find(ctx, tx, wanted.uid); err != nil {
		return state{}, err
	}
	text := wanted.get("task")
	if wanted.ctx.Param("change") != changeTask {
		return found, nil
	}
	uid, err := uuid.Parse(text)
	if err != nil {
		return state{}, lending.NewError(lending.CodeNotFound, "%.60q is not the id of a task", text)
	}
	found.task, err = c.Applications.ReadTask(ctx, tx, wanted.uid, uid)
	return found, err
}

// spot is under the application's page.
func (a asked) spot() spot {
	name := strings.TrimSpace(a.now.app.Borrower.FirstName + " " + a.now.app.Borrower.LastName)
	if name == "" {
		name = a.now.app.Borrower.Email
	}
	return spot{
		section: ui.SectionApplications,
		crumbs: []ui.Crumb{
			{Label: "Applications", Href: paths.Applications},
			{Label: name, Href: paths.To(paths.Application, a.uid.String())},
		},
	}
}

// aboutApplication names an application for those who are about to change it.
func aboutApplication(summary application.Summary) string {
	row := applicationRow(summary)
	parts := []string{row.Name(), row.Reference, row.Merchant}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " · ")
}

// tells says which event a change causes and who gets it.
func tells(kind lending.EventKind, interests map[lending.EventKind]webhook.Interest) string {
	interest := interests[kind]
	switch {
	case interest.Subscriptions == 0:
		return fmt.Sprintf("Records %s; no subscription gets it.", kind)
	case interest.Paused > 0:
		return fmt.Sprintf("Sends %s to %s, of which %d paused and waiting.", kind,
			counted(interest.Subscriptions, "subscription", "subscriptions"), interest.Paused)
	}
	return fmt.Sprintf("Sends %s to %s.", kind,
		counted(interest.Subscriptions, "subscription", "subscriptions"))
}

func (a asked) tells(kind lending.EventKind) string { return tells(kind, a.interests) }

// mails says what the borrower is sent.
func mails(app application.Application, kind string) string {
	if app.Communications == lending.CommunicationsPaused {
		return fmt.Sprintf("The %s e-mail is not sent: communications are paused until an offer is "+
			"accepted. The e-mail log shows it as suppressed.", kind)
	}
	return fmt.Sprintf("The borrower gets the %s e-mail.", kind)
}

// statusSays lists what entering a status brings.
func statusSays(
	app application.Application, to lending.ApplicationStatus,
	interests map[lending.EventKind]webhook.Interest,
) []string {
	says := []string{tells(lending.EventStatusUpdated, interests)}
	if to.NeedsStipulation() {
		says = append(says, mails(app, "stipulation"))
	}
	_, due := lending.LoanToOpen(to, app.Offers, selectedUID(app))
	if due && !app.LoanOpen {
		says = append(says, "The loan opens: the selected product's offer becomes its amount.")
	}
	return says
}

func selectedUID(app application.Application) string {
	if app.SelectedProductUID == nil {
		return ""
	}
	return app.SelectedProductUID.String()
}

// notNow refuses a change that is not possible as things stand.
func notNow(format string, args ...any) error {
	return lending.NewError(lending.CodeInvalidState, format, args...)
}
