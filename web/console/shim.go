package console

import (
	"context"
	"net/url"
	"slices"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/ui"
	"drawbridge/web/console/action"
	"drawbridge/web/console/list"
	"drawbridge/web/console/page"
)

type useCase func(request context.Context, tx *postgres.Tx) (target string, err error)

func (c *Console) act(ctx echo.Context, use useCase) (target string, err error) {
	outcome, err := c.Changes.Commit(ctx, action.Change{
		Do: func(request context.Context, tx *postgres.Tx) (operator.Outcome, error) {
			target, err := use(request, tx)
			return operator.Outcome{Target: target}, err
		},
	})
	return outcome.Target, err
}

func (c *Console) inTx(
	ctx echo.Context, use func(request context.Context, tx *postgres.Tx) error,
) error {
	request := ctx.Request().Context()
	return c.DB.InTx(request, func(tx *postgres.Tx) error { return use(request, tx) })
}

type commitment struct {
	do              func(ctx context.Context, tx *postgres.Tx) (operator.Entry, string, error)
	done, unchanged string
}

func (m commitment) change() action.Change {
	return action.Change{
		Done: m.done, Unchanged: m.unchanged,
		Do: func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
			entry, target, err := m.do(ctx, tx)
			if err != nil || entry.Action == "" {
				return operator.Outcome{Target: target}, err
			}
			return operator.Did(target, entry), nil
		},
	}
}

func (c *Console) commit(ctx echo.Context, change commitment) (target string, err error) {
	outcome, err := c.Changes.Commit(ctx, change.change())
	return outcome.Target, err
}

func (c *Console) showAsk(ctx echo.Context, status int, at page.Place, form ui.AskForm) error {
	return c.Changes.ShowForm(ctx, status, action.Form{Place: at, Fields: form})
}

func (c *Console) answerAsk(
	ctx echo.Context, at page.Place, form ui.AskForm, change commitment,
) error {
	return c.Changes.Submit(ctx, action.Form{Place: at, Fields: form, Change: change.change()})
}

func (c *Console) askAgain(ctx echo.Context, at page.Place, form ui.AskForm, err error) error {
	return c.Changes.ShowRefused(ctx, action.Form{Place: at, Fields: form}, err)
}

func under(p page.Place, label, href string) page.Place {
	p.Above = append(slices.Clone(p.Above), ui.Crumb{Label: label, Href: href})
	return p
}

// RenderFault answers an error.
func (c *Console) RenderFault(ctx echo.Context, err error) error { return c.RenderError(ctx, err) }

var (
	render         = page.Render
	renderHTML     = page.HTML
	currentUser    = page.User
	currentSession = page.Session
	signedIn       = page.SignedIn
	isFragment     = page.IsFragment
	isSent         = page.IsSent
	pathUID        = page.UID
	leadTo         = page.LeadTo
	safeNext       = page.SafeNext
	sentence       = page.Sentence
	known          = page.Known
	errorText      = page.ErrorText
	requiredStep   = page.RequiredStep
	formToken      = action.FormToken
	errSentBefore  = operator.ErrRepeated
)

const (
	tokenField        = page.TokenField
	sessionID         = page.SessionID
	sessionCredential = page.SessionCredential
)

func nextTo(path, next string) string {
	return path + "?" + url.Values{"next": {next}}.Encode()
}

func (c *Console) actAs(ctx echo.Context, token uuid.UUID, use useCase) (string, error) {
	outcome, err := c.Changes.CommitAs(ctx, token, action.Change{
		Do: func(request context.Context, tx *postgres.Tx) (operator.Outcome, error) {
			target, err := use(request, tx)
			return operator.Outcome{Target: target}, err
		},
	})
	return outcome.Target, err
}

func value[T any](pointer *T) T { return page.Value(pointer) }

type csvFile struct {
	Name                string
	Action, SubjectKind string
	Filter              url.Values
	Columns             []string
	Next                func() ([][]string, error)
}

func (c *Console) sendCSV(ctx echo.Context, f csvFile) error {
	return list.SendCSV(ctx, c.Changes, list.CSV{
		Name: f.Name, Action: f.Action, Subject: f.SubjectKind, Filter: f.Filter,
		Columns: f.Columns, Next: f.Next,
	})
}
