package documents

import (
	"os/exec"
	"strings"
	"testing"

	"drawbridge/cmd/e2e/e2etest"
)

// TestSamplePartnerPaysALoanOut lets the program that an integrator might write take a loan
// through all stages at the running service.
func TestSamplePartnerPaysALoanOut(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	data := w.DemoData()
	s := w.Serve()
	sample, err := e2etest.Build(t.TempDir(), "samplepartner")
	if err != nil {
		t.Fatal(err)
	}
	client := data.Partners[0].Clients[0]
	output, err := exec.CommandContext(t.Context(), sample, "run", "--base-url", s.URL+"/api",
		"--client-id", client.ID, "--client-secret", client.Secret,
		"--product", data.Products[0].UID).CombinedOutput()
	if err != nil || !strings.Contains(string(output), "paid out") {
		t.Errorf("it ended with %v: %s", err, output)
	}
}
