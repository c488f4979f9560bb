package docs

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	docsview "drawbridge/views/docs"
)

//go:embed quickstart.yaml
var quickstartSource []byte

// Groups of quick start steps.
const (
	// GroupWebhooks needs an operator's command and the sample partner.
	GroupWebhooks = "webhooks"
	// GroupLoan walks one loan with nothing but bash and curl.
	GroupLoan = "loan"
	// GroupProgram does the same with the sample partner.
	GroupProgram = "program"
)

// Placeholders of the quick start's commands, which a reader replaces.
const (
	PlaceholderClientID     = "<CLIENT_ID>"
	PlaceholderClientSecret = "<CLIENT_SECRET>"
	PlaceholderProductUID   = "<PRODUCT_UID>"
	PlaceholderPartnerUID   = "<PARTNER_UID>"
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

// Script joins the commands of the groups into one bash script, exactly as
// they are printed but for the placeholders, which values replaces. A step
// that wants a terminal of its own runs in the background until the script
// ends. The script stops at the first command that fails.
func Script(base string, values map[string]string, groups ...string) (string, error) {
	steps, err := QuickStart(base)
	if err != nil {
		return "", err
	}
	var script strings.Builder
	script.WriteString("set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n")
	for _, step := range steps {
		if !slices.Contains(groups, step.Group) {
			continue
		}
		fmt.Fprintf(&script, "echo %q\n", StepMark+step.ID)
		if step.Terminal {
			fmt.Fprintf(&script, "%s &\n", strings.TrimSpace(step.Run))
			continue
		}
		script.WriteString(step.Run)
		script.WriteByte('\n')
	}
	written := script.String()
	for placeholder, value := range values {
		written = strings.ReplaceAll(written, placeholder, value)
	}
	return written, nil
}
