package operations

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/operations"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/action"
	"drawbridge/web/console/page"
)

// queues shows every queue.
func (f *Feature) queues(ctx echo.Context) error {
	found, err := f.Queues.Queues(ctx.Request().Context())
	if err != nil {
		return err
	}
	return f.Show(ctx, http.StatusOK, page.Place{Section: ui.SectionQueues, Title: "Job queues"},
		operations.Queues(found, f.DB.Now()))
}

// steerQueue pauses or resumes a queue.
func (f *Feature) steerQueue(ctx echo.Context) (action.Change, error) {
	name, err := url.PathUnescape(ctx.Param("queue"))
	if err != nil {
		return action.Change{}, lending.NewError(lending.CodeNotFound,
			"no queue is called %q", ctx.Param("queue"))
	}
	called := "The queue “" + operations.QueueWord(name) + "”"
	use, done := f.Queues.Pause, called+" is paused. Jobs that run go on."
	switch ctx.Param("act") {
	case "pause":
	case "resume":
		use, done = f.Queues.Resume, called+" goes on."
	default:
		return action.Change{}, lending.NewError(lending.CodeNotFound,
			"a queue can only be paused or resumed")
	}
	return action.Change{
		Done: done,
		Do: func(request context.Context, tx *postgres.Tx) (operator.Outcome, error) {
			return operator.Did(paths.Queues,
				operator.NewEntry("queue."+ctx.Param("act"), name, nil, nil)), use(request, tx, name)
		},
	}, nil
}

// maxCall bounds what the audit log keeps of a request body, in bytes.
const maxCall = 2 << 10

// jobConsolePolicy is page.Policy for the embedded console, whose script sets styles, which
// no other page may do.
var jobConsolePolicy = strings.Replace(page.Policy,
	"style-src 'self'", "style-src 'self' 'unsafe-inline'", 1)

// jobConsole serves River's own console. It has no sign-in and no audit log of its own: the
// guard protects it, and each change is written to the audit log before it is passed on.
func (f *Feature) jobConsole(ctx echo.Context) error {
	request, response := ctx.Request(), ctx.Response()
	if request.URL.Path == paths.JobConsole && request.Method == http.MethodGet {
		return ctx.Redirect(http.StatusSeeOther, paths.JobConsole+"/")
	}
	if request.Method != http.MethodGet {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return fmt.Errorf("reading a call: %w", err)
		}
		if err := lending.CheckValues(url.Values{"body": {string(body)}}); err != nil {
			return err
		}
		request.Body = io.NopCloser(bytes.NewReader(body))
		err = f.Record(ctx, operator.Entry{
			Action: "river.call", SubjectKind: "queue",
			Subject: request.Method + " " + strings.TrimPrefix(request.URL.Path, paths.JobConsole),
			After: map[string]any{
				"body": strings.ToValidUTF8(string(body[:min(len(body), maxCall)]), ""), // cut
			},
		})
		if err != nil {
			return err
		}
	}
	response.Header().Set("Content-Security-Policy", jobConsolePolicy)
	f.JobConsole.ServeHTTP(response, request)
	return nil
}
