package documents

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/web/docs"
	"drawbridge/web/docs/contract"
)

// TestQuickStartWorksAsPrinted runs the very commands of the quick start page,
// the sample partner among them, against the running service.
func TestQuickStartWorksAsPrinted(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	data := w.DemoData()
	s := w.Serve()
	programs := t.TempDir()
	sample := filepath.Join(programs, "samplepartner")
	build := exec.Command("go", "build", "-o", sample, "drawbridge/cmd/samplepartner")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the sample partner: %v\n%s", err, output)
	}
	if err := os.Symlink(e2etest.Binary, filepath.Join(programs, "drawbridge")); err != nil {
		t.Fatal(err)
	}
	groups := []string{docs.GroupWebhooks, docs.GroupLoan, docs.GroupProgram}
	client := data.Partners[0].Clients[0]
	script, err := docs.Script(s.URL+"/api", map[string]string{
		docs.PlaceholderClientID:     client.ID,
		docs.PlaceholderClientSecret: client.Secret,
		docs.PlaceholderProductUID:   data.Products[0].UID,
		docs.PlaceholderPartnerUID:   data.Partners[0].UID.String(),
	}, groups...)
	if err != nil {
		t.Fatal(err)
	}
	shell := w.Command()
	command := exec.CommandContext(t.Context(), "bash", "-c", script)
	command.Dir = w.Folder
	command.Env = append(slices.Clone(shell.Env), "PATH="+programs+":"+os.Getenv("PATH"))
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("the script ended with %v:\n%s", err, output)
	}
	if err := contract.CheckQuickStart(string(output), groups...); err != nil {
		t.Errorf("the script printed something else: %v\n%s", err, output)
	}
}
