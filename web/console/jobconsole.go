package console

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
	"drawbridge/views/paths"
)

// maxCall bounds what the audit log keeps of a call's body, in bytes.
const maxCall = 2 << 10

// jobConsolePolicy is the policy of the embedded console: it sets styles from
// its script, which everything else here must not.
var jobConsolePolicy = strings.Replace(policy,
	"style-src 'self'", "style-src 'self' 'unsafe-inline'", 1)

// jobConsole serves the queue library's own console. It has no sign-in and no log
// of its own: the guard stands before it, and each change is kept in the audit
// log before it is passed on.
func (c *Console) jobConsole(ctx echo.Context) error {
	request, response := ctx.Request(), ctx.Response()
	if request.URL.Path == paths.JobConsole && request.Method == http.MethodGet {
		return ctx.Redirect(http.StatusSeeOther, paths.JobConsole+"/")
	}
	if request.Method != http.MethodGet {
		if err := c.auditCall(ctx); err != nil {
			return err
		}
	}
	response.Header().Set("Content-Security-Policy", jobConsolePolicy)
	c.JobConsole.ServeHTTP(response, request)
	return nil
}

// auditCall keeps a change that the embedded console asks for.
func (c *Console) auditCall(ctx echo.Context) error {
	request := ctx.Request()
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return fmt.Errorf("reading a call: %w", err)
	}
	if err := lending.CheckValues(url.Values{"body": {string(body)}}); err != nil {
		return err
	}
	request.Body = io.NopCloser(bytes.NewReader(body))
	return c.inTx(ctx, func(_ context.Context, tx *postgres.Tx) error {
		return c.Operators.Audit(request.Context(), tx, operator.Entry{
			Actor: currentUser(ctx).Email, Address: ctx.RealIP(), Action: "river.call",
			SubjectKind: "queue",
			Subject:     request.Method + " " + strings.TrimPrefix(request.URL.Path, paths.JobConsole),
			After: map[string]any{
				"body": strings.ToValidUTF8(string(body[:min(len(body), maxCall)]), ""), // cut
			},
		})
	})
}
