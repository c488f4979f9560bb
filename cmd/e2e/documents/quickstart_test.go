package documents

import (
	"os"
	"os/exec"
	"testing"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/web/docs/contracttest"
)

// TestQuickStartWorksAsPrinted runs the quick start page's commands unchanged against the
// running service, with nothing but credentials and curl.
func TestQuickStartWorksAsPrinted(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	data := w.DemoData()
	s := w.Serve()
	client := data.Partners[0].Clients[0]
	script, err := contracttest.Script(s.URL+"/api", map[string]string{
		contracttest.PlaceholderClientID:     client.ID,
		contracttest.PlaceholderClientSecret: client.Secret,
		contracttest.PlaceholderProductUID:   data.Products[0].UID,
	})
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "bash", "-c", script)
	command.Dir = t.TempDir()
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + command.Dir}
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("the script ended with %v:\n%s", err, output)
	}
	if err := contracttest.CheckQuickStart(string(output)); err != nil {
		t.Errorf("the script printed something else: %v\n%s", err, output)
	}
}
