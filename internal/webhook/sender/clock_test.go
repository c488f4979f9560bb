package sender

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The sender uses the clock that it was given, however wrong the machine's is.
func TestSenderGoesByItsClock(t *testing.T) {
	t.Parallel()
	const off = 30 * time.Minute
	now := func() time.Time { return time.Now().Add(-off) }
	ca := newAuthority(t)
	onlyNow := ca.issue(t, hookName, -off-time.Minute, -off+time.Minute)
	notYet := ca.issue(t, hookName, -time.Minute, time.Minute)
	until := now().Add(10 * time.Minute).UTC().Format(http.TimeFormat)
	busy := fmt.Sprintf("HTTP/1.1 503 Service Unavailable\r\nRetry-After: %s\r\n"+
		"Content-Length: 0\r\n\r\n", until)
	sender := newTestSender(t, func(c *Config) { c.RootCAs, c.Now = ca.pool, now })

	got := sender.Send(t.Context(), hook(serve(t, onlyNow, respond(busy)).secure()))
	if got.Status != http.StatusServiceUnavailable {
		t.Fatalf("a certificate that is valid: status %d, %q", got.Status, got.Error)
	}
	if got.RetryAfter < 8*time.Minute || got.RetryAfter > 10*time.Minute {
		t.Errorf("the endpoint asks for %s, want about ten minutes", got.RetryAfter)
	}
	got = sender.Send(t.Context(), hook(serve(t, notYet, respond(ok200)).secure()))
	if got.Cause != CauseNotYet || !strings.Contains(got.Error, "it begins on") {
		t.Errorf("a certificate that is not valid yet: status %d, %q", got.Status, got.Error)
	}
}
