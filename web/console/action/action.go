// Package action is the one way in which the console changes anything. A change is
// data: when it is possible, who may make it, its form, what it does and what the
// audit log is told. The engine gives each its form, the token that makes the form act
// once, the transaction, the audit entries, the refusal beside the field, and the
// notice on the page that comes next.
//
//	GET   Spec.Confirm ─ not possible ──▶ error page, or led to where the reason shows
//	         └────────── Form ──────────▶ the form, on a page or in a dialog
//	POST  Spec.Confirm ─ Form ─ Do ─ refused ──▶ the form with what was typed and is wrong
//	                             └── done ─────▶ notice, and the page of the result
package action

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/ui"
	"drawbridge/web/console/page"
)

// A value may be compared with a secret this often by one person, in all ways together.
const (
	maxComparisons   = 30
	comparisonWindow = time.Hour
)

// Compared is the entry of a value that was compared with a secret, in one of the ways that count
// together.
func Compared(entry operator.Entry) operator.Entry {
	entry.Limit, entry.Window = maxComparisons, comparisonWindow
	entry.Together = []string{
		"delivery.examine_signature", "subscription.compare_secret", "subscription.examine_signature",
	}
	return entry
}

// MaxReason bounds the reason that a person gives, in characters.
const MaxReason = 500

// Spec is a change that is asked for by a form at a path of its own.
type Spec struct {
	// Path is where the form is shown and sent.
	Path string
	// Shown and Sent name the two routes.
	Shown, Sent string
	// Role is the least that may make the change.
	Role operator.Role
	// Reauthenticate asks the person who they are again, before the form.
	Reauthenticate bool
	// Confirm looks at how things are, and returns the form. An error says why the change
	// is not possible; one by Unneeded leads to where that shows.
	Confirm func(ctx echo.Context) (Form, error)
}

// Form is how somebody is asked for a change, and what it does.
type Form struct {
	Change

	// Place is the form's; its title is that of Fields when empty.
	Place page.Place
	// Fields are what is asked, with the consequences.
	Fields ui.Confirmation
	// Page draws the form in a way of its own; nil for the usual page or dialog.
	Page func(ui.Confirmation) templ.Component
	// Show answers with what can be seen this once, such as a new secret, in place of
	// leading to the outcome's target; nil for none.
	Show func(ctx echo.Context) error
}

// Change is what a form does.
type Change struct {
	// Do makes the change, in one transaction with its token and its audit entries.
	Do func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error)
	// Done is said on the page that comes next, Unchanged when nothing changed; empty
	// for nothing to say.
	Done, Unchanged string
	// Leaves tells that Do ends the session of who acts, and holds it before that.
	Leaves bool
}

// unneeded says that a change has nothing to do.
type unneeded struct{ notice, target string }

func (unneeded) Error() string { return "there is nothing to change" }

// Unneeded ends Spec.Confirm where there is nothing to do: the person is led to target and
// told so.
func Unneeded(notice, target string) error { return unneeded{notice, target} }

// IsUnneeded tells that an error is one of Unneeded.
func IsUnneeded(err error) bool {
	_, nothing := errors.AsType[unneeded](err)
	return nothing
}

// Engine makes changes.
type Engine struct {
	*page.Site
	// ShownOnce is what the second arrival of a form is told, by path, where the first
	// showed a secret, which no page shows again.
	ShownOnce map[string]string
}

// Actions are the routes of changes, two for each: its form, and the change.
func (e *Engine) Actions(specs ...Spec) []page.Route {
	var routes []page.Route
	for _, spec := range specs {
		handler := echo.HandlerFunc(func(ctx echo.Context) error {
			form, err := spec.Confirm(ctx)
			if nothing, ok := errors.AsType[unneeded](err); ok {
				e.LeaveNotice(ctx, nothing.notice)
				return page.LeadTo(ctx, nothing.target)
			}
			if err != nil {
				return err
			}
			form.Fields.Proof = spec.Reauthenticate
			if !page.IsSent(ctx) {
				return e.ShowForm(ctx, http.StatusOK, form)
			}
			form.Fields = Typed(ctx, form.Fields)
			return e.Submit(ctx, form)
		})
		if spec.Reauthenticate {
			handler = e.Reauthenticated(handler)
		}
		routes = append(routes,
			page.Get(spec.Path, spec.Shown, spec.Role, handler),
			page.Post(spec.Path, spec.Sent, spec.Role, handler))
	}
	return routes
}

// ShowForm shows a form: on a page of its own, or in a dialog when a script asks.
//
// A small task is a dialog: a few fields over the page where it began. One that is wide, or
// has a page of its own to weigh it on, is too large for one, and a script that asks for its
// dialog is sent to the page.
func (e *Engine) ShowForm(ctx echo.Context, status int, form Form) error {
	if page.IsFragment(ctx) && !page.IsSent(ctx) && (form.Page != nil || form.Fields.Wide) {
		return ctx.NoContent(http.StatusNotAcceptable)
	}
	if form.Page == nil && page.IsFragment(ctx) {
		return page.Render(ctx, status, ui.ConfirmationDialog(form.Fields))
	}
	if form.Place.Title == "" {
		form.Place.Title = form.Fields.Title
	}
	if form.Page == nil {
		form.Page = ui.ConfirmationBody
	}
	return e.Show(ctx, status, form.Place, form.Page(form.Fields))
}

// Submit does what a form asks for and leads on, or shows the form again with what
// is wrong with it.
func (e *Engine) Submit(ctx echo.Context, form Form) error {
	outcome, err := e.Commit(ctx, form.Change)
	if err != nil {
		return e.ShowRefused(ctx, form, err)
	}
	if form.Show != nil {
		return form.Show(ctx)
	}
	return page.LeadTo(ctx, outcome.Target)
}

// ShowRefused shows a form that was refused, with what was typed and what is wrong.
// What is no refusal of the form is returned.
//
// What was typed was typed over what the form showed then, so the form still says that it saw
// that, unless the refusal tells how things are now.
func (e *Engine) ShowRefused(ctx echo.Context, form Form, err error) error {
	refusal, ok := errors.AsType[*lending.Error](err)
	if !ok || refusal.Code == lending.CodeNotFound || refusal.Code == lending.CodeUnauthorized {
		return err
	}
	form.Fields = Refused(form.Fields, refusal)
	form.Fields.Reason = ctx.FormValue("reason")
	if refusal.Code != lending.CodeInvalidState {
		form.Fields.Hidden = carried(ctx, form.Fields.Hidden)
	}
	return e.ShowForm(ctx, e.Status(refusal.Code), form)
}

// Post is the handler of a change that a button makes, without a form of its own:
// it leads to the outcome's target, and a refusal is an error page.
func (e *Engine) Post(prepare func(ctx echo.Context) (Change, error)) echo.HandlerFunc {
	return func(ctx echo.Context) error {
		change, err := prepare(ctx)
		if err != nil {
			return err
		}
		outcome, err := e.Commit(ctx, change)
		if err != nil {
			return err
		}
		return page.LeadTo(ctx, outcome.Target)
	}
}

// Commit makes a change at most once for each form that was shown, and keeps it in the
// audit log, both or neither. The notice is left for the next page.
//
// A form that was refused has done nothing and may be sent again. Errors:
// VALIDATION_ERROR for a form without its token.
func (e *Engine) Commit(ctx echo.Context, change Change) (operator.Outcome, error) {
	token, err := FormToken(ctx)
	if err != nil {
		return operator.Outcome{}, err
	}
	return e.CommitAs(ctx, token, change)
}

// CommitAs is Commit under a token of its own, for a part of what a form does.
func (e *Engine) CommitAs(
	ctx echo.Context, token uuid.UUID, change Change,
) (operator.Outcome, error) {
	reason := strings.TrimSpace(ctx.FormValue("reason"))
	if reason != "" {
		var errs lending.FieldErrors
		reason = errs.Text("reason", reason, MaxReason)
		if err := errs.Err(); err != nil {
			return operator.Outcome{}, err
		}
	}
	act := operator.Change{
		Actor: page.User(ctx).Email, Address: ctx.RealIP(), Reason: reason, Token: token,
		Session: page.Session(ctx).UID, Do: change.Do,
	}
	if change.Leaves {
		act.Session = uuid.Nil
	}
	outcome, err := e.Operators.Act(ctx.Request().Context(), act)
	if err != nil {
		return operator.Outcome{}, err
	}
	ctx.Set(actedKey, true)
	notice := change.Done
	if len(outcome.Entries) == 0 && change.Unchanged != "" {
		notice = change.Unchanged
	}
	if notice != "" {
		e.LeaveNotice(ctx, notice)
	}
	return outcome, nil
}

// Record keeps in the audit log that somebody looked at something or took a copy of
// it, which changes nothing and may come twice.
func (e *Engine) Record(ctx echo.Context, entry operator.Entry) error {
	return e.Look(ctx, func(context.Context, *postgres.Tx) (operator.Outcome, error) {
		return operator.Did("", entry), nil
	})
}

// Look reads what the audit log is told about, in one transaction. It changes nothing
// and may come twice.
func (e *Engine) Look(
	ctx echo.Context, do func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error),
) error {
	return e.ActAs(ctx, page.User(ctx).Email, do)
}

// ActAs does what belongs to no form, such as a sign-in, for an actor who need not be
// signed in, in one transaction with its audit entries. It may come twice.
func (e *Engine) ActAs(
	ctx echo.Context, actor string,
	do func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error),
) error {
	_, err := e.Operators.Act(ctx.Request().Context(), operator.Change{
		Actor: actor, Address: ctx.RealIP(), Do: do,
	})
	return err
}
