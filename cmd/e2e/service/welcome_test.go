package service

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
)

// TestWelcomeIsLastAndItsCommandRepeats starts the service as a newcomer does: the instructions are
// the last text on the screen, even after the demo's e-mails are handled, and the command to paste
// works every time.
func TestWelcomeIsLastAndItsCommandRepeats(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	server := w.Serve("--demo")
	const last = "More loans, partners and credentials: drawbridge demo"
	server.WaitForLog(last)
	db := w.Open(t)
	e2etest.WaitForCount(t, db, 0, `SELECT count(*) FROM emails WHERE state = 'queued'`)
	if _, after, _ := strings.Cut(server.Logged(), last); strings.TrimSpace(after) != "" {
		t.Errorf("after the welcome the screen showed %s", after)
	}

	command := regexp.MustCompile(`(?m)^ *curl (?:.*\\\n)*.*$`).FindString(server.Logged())
	const settled = `SELECT count(*) FROM deliveries
		WHERE event = 'disbursement.funding.settled' AND state = 'delivered'`
	before := pgtest.Count(t, db, settled)
	for range 2 {
		answer, err := exec.CommandContext(t.Context(), "bash", "-c", command+" --silent --fail").Output()
		if err != nil || !strings.Contains(string(answer), `"statusCode":201`) {
			t.Fatalf("%s\nanswered %s (%v)", command, answer, err)
		}
	}
	// In addition to the e-mails of the demo's past traffic, which are never sent.
	e2etest.WaitForCount(t, db, before+2, settled)
	waittest.Within(t, time.Minute, "the demo to name the address", func() bool {
		return w.DemoData().BaseURL == server.URL+"/api"
	})
}
