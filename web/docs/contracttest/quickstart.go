package contracttest

import (
	"fmt"
	"strings"

	"drawbridge/web/docs"
)

// Placeholders of the quick start's commands, which a reader replaces.
const (
	PlaceholderClientID     = "<CLIENT_ID>"
	PlaceholderClientSecret = "<CLIENT_SECRET>"
	PlaceholderProductUID   = "<PRODUCT_UID>"
)

// stepMark starts the line that Script prints before each step, followed by the step's id.
const stepMark = "### "

// Script joins the commands into one bash script, exactly as they are printed except for
// the placeholders, which values replaces. The script stops at the first command that
// fails.
func Script(base string, values map[string]string) (string, error) {
	steps, err := docs.QuickStart(base)
	if err != nil {
		return "", err
	}
	var script strings.Builder
	script.WriteString("set -euo pipefail\n")
	for _, step := range steps {
		fmt.Fprintf(&script, "echo %q\n%s\n", stepMark+step.ID, step.Run)
	}
	written := script.String()
	for placeholder, value := range values {
		written = strings.ReplaceAll(written, placeholder, value)
	}
	return written, nil
}

// CheckQuickStart compares the output of Script with what each step promises, and names the
// first promise that was not kept.
func CheckQuickStart(output string) error {
	steps, err := docs.QuickStart(docs.ExampleBaseURL)
	if err != nil {
		return err
	}
	for _, step := range steps {
		_, printed, begun := strings.Cut(output, stepMark+step.ID+"\n")
		if !begun {
			return fmt.Errorf("step %s did not begin", step.ID)
		}
		printed, _, _ = strings.Cut(printed, "\n"+stepMark)
		for _, part := range step.Expect {
			if !strings.Contains(printed, part) {
				return fmt.Errorf("step %s did not print %s:\n%s", step.ID, part, printed)
			}
		}
	}
	return nil
}
