package docs

import (
	_ "embed"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	docsview "drawbridge/views/docs"
)

//go:embed quickstart.yaml
var quickstartSource []byte

// Placeholders of the quick start's commands, which a reader replaces.
const (
	PlaceholderClientID     = "<CLIENT_ID>"
	PlaceholderClientSecret = "<CLIENT_SECRET>"
	PlaceholderProductUID   = "<PRODUCT_UID>"
)

// QuickStart returns the steps with base as the server's address.
func QuickStart(base string) ([]docsview.Step, error) {
	var steps []docsview.Step
	if err := yaml.Unmarshal(quickstartSource, &steps); err != nil {
		return nil, fmt.Errorf("reading quickstart.yaml: %w", err)
	}
	for i := range steps {
		steps[i].Run = strings.ReplaceAll(steps[i].Run, ExampleBaseURL, base)
	}
	return steps, nil
}

// StepMark begins the line that Script prints before each step, followed by
// the step's id.
const StepMark = "### "

// Script joins the commands into one bash script, exactly as they are printed but for
// the placeholders, which values replaces. The script stops at the first command that
// fails.
func Script(base string, values map[string]string) (string, error) {
	steps, err := QuickStart(base)
	if err != nil {
		return "", err
	}
	var script strings.Builder
	script.WriteString("set -euo pipefail\n")
	for _, step := range steps {
		fmt.Fprintf(&script, "echo %q\n%s\n", StepMark+step.ID, step.Run)
	}
	written := script.String()
	for placeholder, value := range values {
		written = strings.ReplaceAll(written, placeholder, value)
	}
	return written, nil
}
