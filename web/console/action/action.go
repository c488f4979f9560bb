// Package action is the one way in which the console changes anything. A Spec describes a
// change: when it is possible, who may make it, its form, what it does and what the audit
// log records. The engine adds the form's page, the token that makes the form act once, the
// transaction, the audit entries, the refusal beside the field, and the notice on the next
// page.
//
//	GET   Spec.Confirm ─ not possible ──▶ error page, or redirect to where the reason shows
//	         └────────── Form ──────────▶ the form, on a page or in a dialog
//	POST  Spec.Confirm ─ Form ─ Do ─ refused ──▶ the form with its values and errors
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

// The limit on comparing values with a secret: per person, and over all ways to compare.
const (
	maxComparisons   = 30
	comparisonWindow = time.Hour
)

// Compared makes entry the audit entry of a comparison with a secret and sets its limit,
// which all ways to compare share.
func Compared(entry operator.Entry) operator.Entry {
	entry.Limit, entry.Window = maxComparisons, comparisonWindow
	entry.Together = []string{
		"delivery.examine_signature", "subscription.compare_secret", "subscription.examine_signature",
	}
	return entry
}

// MaxReason bounds the reason that a person gives, in characters.
const MaxReason = 500

// Spec is a change whose form has a path of its own.
type Spec struct {
	// Path is where the form is shown and sent.
	Path string
	// Shown and Sent name the two routes.
	Shown, Sent string
	// Role is the lowest role that may make the change.
	Role operator.Role
	// Reauthenticate requires a recent re-authentication before the form.
	Reauthenticate bool
	// Confirm reads the current state and returns the form. An error says why the change is
	// not possible; one made by Unneeded redirects to the page that shows it.
	Confirm func(ctx echo.Context) (Form, error)
}

// Form asks for a change and makes it.
type Form struct {
	Change

	// Place is the form's place; its title defaults to that of Fields.
	Place page.Place
	// Fields are the controls and the consequences.
	Fields ui.Confirmation
	// Page renders the form in its own way; nil for the usual page or dialog.
	Page func(ui.Confirmation) templ.Component
	// Show, unless nil, answers with what is shown only once, such as a new secret, instead of
	// redirecting to the outcome's target.
	Show func(ctx echo.Context) error
}

// Change is what a form does.
type Change struct {
	// Do makes the change, in one transaction with its token and its audit entries.
	Do func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error)
	// Done is the notice on the next page, Unchanged the notice if nothing changed; empty for
	// no notice.
	Done, Unchanged string
	// Leaves means that Do ends, and locks, the session of the acting user itself.
	Leaves bool
}

// unneeded is the error of a change that has nothing to do.
type unneeded struct{ notice, target string }

func (unneeded) Error() string { return "there is nothing to change" }

// Unneeded returns the error for Spec.Confirm when there is nothing to do: the user is
// redirected to target and shown the notice.
func Unneeded(notice, target string) error { return unneeded{notice, target} }

// IsUnneeded reports whether an error was made by Unneeded.
func IsUnneeded(err error) bool {
	_, nothing := errors.AsType[unneeded](err)
	return nothing
}

// Engine makes changes.
type Engine struct {
	*page.Site
	// ShownOnce maps a path to the notice for the second submission of its form, if the first
	// one showed a secret, which no page shows again.
	ShownOnce map[string]string
}

// Actions returns two routes for each change: its form, and its submission.
func (e *Engine) Actions(specs ...Spec) []page.Route {
	var routes []page.Route
	for _, spec := range specs {
		handler := echo.HandlerFunc(func(ctx echo.Context) error {
			form, err := spec.Confirm(ctx)
			if nothing, ok := errors.AsType[unneeded](err); ok {
				e.LeaveNotice(ctx, nothing.notice)
				return page.Redirect(ctx, nothing.target)
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

// ShowForm shows a form on a page of its own or, if a script asks for it, in a dialog.
//
// A small form is a dialog over the page where it was opened. A wide form, or one with a
// Page of its own, is too large for a dialog; a script that asks for its dialog gets 406
// and opens the page.
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

// Submit makes the change of a form and redirects, or shows the form again with the errors.
func (e *Engine) Submit(ctx echo.Context, form Form) error {
	outcome, err := e.Commit(ctx, form.Change)
	if err != nil {
		return e.ShowRefused(ctx, form, err)
	}
	if form.Show != nil {
		return form.Show(ctx)
	}
	return page.Redirect(ctx, outcome.Target)
}

// ShowRefused shows a refused form again, with its values and errors. An error that is not
// a refusal of the form is returned.
//
// The values were typed over the state that the form showed, so its hidden fields still
// carry that state, unless the refusal says that the state has changed.
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

// Post returns the handler of a change that a button makes without a form: it redirects to
// the outcome's target, and a refusal is an error page.
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
		return page.Redirect(ctx, outcome.Target)
	}
}

// Commit makes a change at most once per rendered form and writes its audit entries in the
// same transaction. The notice is left for the next page.
//
// A form that was refused has changed nothing and may be sent again. Errors:
// VALIDATION_ERROR for a form without its token.
func (e *Engine) Commit(ctx echo.Context, change Change) (operator.Outcome, error) {
	token, err := FormToken(ctx)
	if err != nil {
		return operator.Outcome{}, err
	}
	return e.CommitAs(ctx, token, change)
}

// CommitAs is Commit with a token other than the form's, for a part of what the form does.
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

// Record writes to the audit log that the user viewed or copied something. This changes
// nothing and may happen twice.
func (e *Engine) Record(ctx echo.Context, entry operator.Entry) error {
	return e.ReadAudited(ctx, func(context.Context, *postgres.Tx) (operator.Outcome, error) {
		return operator.Did("", entry), nil
	})
}

// ReadAudited makes a read and its audit entries in one transaction. It changes nothing and may
// happen twice.
func (e *Engine) ReadAudited(
	ctx echo.Context, do func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error),
) error {
	return e.ActAs(ctx, page.User(ctx).Email, do)
}

// ActAs makes a change without a form, such as a sign-in, with its audit entries in one
// transaction, for an actor who need not be signed in. It may happen twice.
func (e *Engine) ActAs(
	ctx echo.Context, actor string,
	do func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error),
) error {
	_, err := e.Operators.Act(ctx.Request().Context(), operator.Change{
		Actor: actor, Address: ctx.RealIP(), Do: do,
	})
	return err
}
