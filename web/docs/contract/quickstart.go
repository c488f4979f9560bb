package contract

import (
	"fmt"
	"strings"

	"drawbridge/web/docs"
)

// CheckQuickStart compares what docs.Script printed with what each step promises, and
// names the first promise that was not kept.
func CheckQuickStart(output string) error {
	steps, err := docs.QuickStart(docs.ExampleBaseURL)
	if err != nil {
		return err
	}
	for _, step := range steps {
		_, printed, begun := strings.Cut(output, docs.StepMark+step.ID+"\n")
		if !begun {
			return fmt.Errorf("step %s did not begin", step.ID)
		}
		printed, _, _ = strings.Cut(printed, "\n"+docs.StepMark)
		for _, part := range step.Expect {
			if !strings.Contains(printed, part) {
				return fmt.Errorf("step %s did not print %s:\n%s", step.ID, part, printed)
			}
		}
	}
	return nil
}
