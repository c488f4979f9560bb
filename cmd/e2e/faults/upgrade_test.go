//go:build upgrade

package faults

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/secret"
)

// previousRelease is the commit of the release before this one, 0.1.0.
const previousRelease = "46a595d6e34e556c3316283b1723ecd084ebc9a5"

// TestPreviousReleaseOnThisSchema upgrades as the manual says: the schema first,
// under the running previous release, then process by process.
func TestPreviousReleaseOnThisSchema(t *testing.T) {
	t.Parallel()
	w, e := e2etest.New(t), e2etest.NewEndpoint(t, "200 OK")
	w.Env["SSL_CERT_FILE"] = e.CAFile
	w.Env["DRAWBRIDGE_SECRETS_KEY"] = secret.GenerateKey()
	w.Execute(w.Open(t), `DROP SCHEMA public CASCADE; CREATE SCHEMA public`)
	old := *w
	old.Program = buildPrevious(t)
	ok(&old, "migrate", "up")
	data := old.DemoData()
	old.Subscribe(data, e.URL)
	before := old.Serve()
	if status := e2etest.RequestDraw(t, before.URL, data, "first_regular"); status != http.StatusOK {
		t.Fatalf("on its own schema the previous release answered a draw with %d", status)
	}
	uid, _ := e.Next(t).Value("x-drawbridge-delivery")

	ok(w, "migrate", "up")

	if status := e2etest.RequestDraw(t, before.URL, data, "middle"); status != http.StatusOK {
		t.Errorf("on the new schema the previous release answered a draw with %d", status)
	}
	during, _ := e.Next(t).Value("x-drawbridge-delivery")
	old.WaitForState(during, "delivered")
	if !e2etest.SignsIn(t, before.URL, data.Users[0]) {
		t.Error("the previous release lets nobody into its console")
	}

	after := w.Serve() // alongside it, on the same queue
	if !e2etest.SignsIn(t, after.URL, data.Users[0]) {
		t.Error("the new release lets nobody into its console")
	}
	sent := map[string]int{}
	const resends = 40
	for i := range resends {
		program := []*e2etest.Harness{w, &old}[i%2]
		ok(program, "delivery", "resend", uid, "--reason", "both releases at once")
	}
	for range resends {
		delivery, _ := e.Next(t).Value("x-drawbridge-delivery")
		sent[delivery]++
	}
	e.WantSilence(t)
	if len(sent) != resends {
		t.Errorf("%d different deliveries came of %d", len(sent), resends)
	}
	for delivery := range sent {
		if detail := w.WaitForState(delivery, "delivered"); detail.AttemptCount != 1 {
			t.Errorf("delivery %s took %d attempts", delivery, detail.AttemptCount)
		}
	}
	if status := before.Stop(); status != 0 {
		t.Errorf("the previous release ended with %d", status)
	}
	if status := e2etest.RequestDraw(t, after.URL, data, "early_completion"); status != http.StatusOK {
		t.Errorf("the new release answered a draw with %d", status)
	}
	e.Next(t)
	if status := after.Stop(); status != 0 {
		t.Errorf("the new release ended with %d", status)
	}
	for _, s := range []*e2etest.Server{before, after} {
		// Log lines of the queue about its own end are no faults.
		serving, _, _ := strings.Cut(s.Logged(), `"msg":"stopping"`)
		if strings.Contains(serving, `"level":"ERROR"`) {
			t.Errorf("logged faults: %s", serving)
		}
	}
}

// ok runs a command that must succeed.
func ok(w *e2etest.Harness, args ...string) {
	w.T.Helper()
	if got := w.Run("", args...); got.Status != 0 {
		w.T.Fatalf("%v ended with %d: %s", args, got.Status, got.Stderr)
	}
}

// buildPrevious builds the previous release from the repository's history.
func buildPrevious(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	program := filepath.Join(folder, "drawbridge")
	script := `set -euo pipefail
		git -C ../../.. archive "$1" | tar -x -C "$2"
		cd "$2" && go build -trimpath -buildvcs=false -o "$3" ./cmd/drawbridge`
	output, err := exec.CommandContext(t.Context(), "bash", "-c", script, "build",
		previousRelease, folder, program+"-previous").CombinedOutput()
	if err != nil {
		t.Fatalf("building the previous release (is its history here?): %v\n%s", err, output)
	}
	return program + "-previous"
}
