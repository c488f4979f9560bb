//go:build upgrade

package main

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"drawbridge/internal/secret"
)

// previousRelease is the commit of the release before this one, 0.1.0.
const previousRelease = "46a595d6e34e556c3316283b1723ecd084ebc9a5"

// TestPreviousReleaseOnThisSchema upgrades as the manual says: the schema first,
// under the running previous release, then process by process.
func TestPreviousReleaseOnThisSchema(t *testing.T) {
	t.Parallel()
	w, e := newWorld(t), newEndpoint(t, "200 OK")
	w.vars["SSL_CERT_FILE"] = e.caFile
	w.vars["DRAWBRIDGE_SECRETS_KEY"] = secret.GenerateKey()
	w.execute(w.open(t), `DROP SCHEMA public CASCADE; CREATE SCHEMA public`)
	old := *w
	old.program = buildPrevious(t)
	old.ok("migrate", "up")
	data := old.demoData()
	old.subscribe(data, e)
	before := old.serve()
	if status := draw(t, before.url, data, "first_regular"); status != http.StatusOK {
		t.Fatalf("on its own schema the previous release answered a draw with %d", status)
	}
	uid, _ := e.next(t).value("x-drawbridge-delivery")

	w.ok("migrate", "up")

	if status := draw(t, before.url, data, "middle"); status != http.StatusOK {
		t.Errorf("on the new schema the previous release answered a draw with %d", status)
	}
	during, _ := e.next(t).value("x-drawbridge-delivery")
	old.waitForState(during, "delivered")
	if !signsIn(t, before.url, data.Users[0]) {
		t.Error("the previous release lets nobody into its console")
	}

	after := w.serve() // beside it, on the same queue
	if !signsIn(t, after.url, data.Users[0]) {
		t.Error("the new release lets nobody into its console")
	}
	sent := map[string]int{}
	const resends = 40
	for i := range resends {
		program := []*world{w, &old}[i%2]
		program.ok("delivery", "resend", uid, "--reason", "both releases at once")
	}
	for range resends {
		delivery, _ := e.next(t).value("x-drawbridge-delivery")
		sent[delivery]++
	}
	e.wantSilence(t)
	if len(sent) != resends {
		t.Errorf("%d different deliveries came of %d", len(sent), resends)
	}
	for delivery := range sent {
		if detail := w.waitForState(delivery, "delivered"); detail.AttemptCount != 1 {
			t.Errorf("delivery %s took %d attempts", delivery, detail.AttemptCount)
		}
	}
	if status := before.stop(); status != 0 {
		t.Errorf("the previous release ended with %d", status)
	}
	if status := draw(t, after.url, data, "early_completion"); status != http.StatusOK {
		t.Errorf("the new release answered a draw with %d", status)
	}
	e.next(t)
	if status := after.stop(); status != 0 {
		t.Errorf("the new release ended with %d", status)
	}
	for _, s := range []*server{before, after} {
		// What the queue says about its own end is no fault.
		serving, _, _ := strings.Cut(s.logged(), `"msg":"stopping"`)
		if strings.Contains(serving, `"level":"ERROR"`) {
			t.Errorf("logged faults: %s", serving)
		}
	}
}

// ok runs a command that must succeed.
func (w *world) ok(args ...string) {
	w.t.Helper()
	if got := w.run("", args...); got.status != 0 {
		w.t.Fatalf("%v ended with %d: %s", args, got.status, got.stderr)
	}
}

// buildPrevious builds the previous release out of the repository's history.
func buildPrevious(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	program := filepath.Join(folder, "drawbridge")
	script := `set -euo pipefail
		git -C ../.. archive "$1" | tar -x -C "$2"
		cd "$2" && go build -trimpath -buildvcs=false -o "$3" ./cmd/drawbridge`
	output, err := exec.CommandContext(t.Context(), "bash", "-c", script, "build",
		previousRelease, folder, program+"-previous").CombinedOutput()
	if err != nil {
		t.Fatalf("building the previous release (is its history here?): %v\n%s", err, output)
	}
	return program + "-previous"
}
