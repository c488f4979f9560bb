package operations

import (
	"testing"

	"drawbridge/internal/processes"
)

func TestEveryChoreHasWords(t *testing.T) {
	t.Parallel()
	for _, kind := range processes.Chores {
		if choreWords[kind] == "" {
			t.Errorf("nothing says what %s does", kind)
		}
	}
	if len(choreWords) != len(processes.Chores) {
		t.Errorf("%d chores have words, and there are %d", len(choreWords), len(processes.Chores))
	}
}
