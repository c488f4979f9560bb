package main

import (
	"strings"
	"testing"
)

// TestDemoPrintsSchedules: the quick start has the reader choose a product by its schedule.
func TestDemoPrintsSchedules(t *testing.T) {
	t.Parallel()
	printed := newDesk(t).text(t, "demo")
	for _, schedule := range []string{"40,40,20", "50,50", "100", "33.33,33.33,33.34"} {
		found := false
		for line := range strings.Lines(printed) {
			words := strings.Fields(line)
			found = found || len(words) > 3 && words[0] == "product" && words[3] == schedule
		}
		if !found {
			t.Errorf("no product with the schedule %s in:\n%s", schedule, printed)
		}
	}
}
