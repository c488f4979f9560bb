package contract

import (
	"fmt"
	"strings"

	"drawbridge/web/docs"
)

// CheckQuickStart compares what docs.Script printed with what each step of the
// groups promises, and names the first promise that was not kept.
func CheckQuickStart(output string, groups ...string) error {
	steps, err := docs.QuickStart(docs.ExampleBaseURL)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, group := range groups {
		wanted[group] = true
	}
	for _, step := range steps {
		if !wanted[step.Group] {
			continue
		}
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
