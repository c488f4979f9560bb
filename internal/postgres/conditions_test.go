package postgres

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConditions(t *testing.T) {
	t.Parallel()
	var none Conditions
	if none.Where() != "" || none.Args != nil {
		t.Errorf("without conditions: %q %v", none.Where(), none.Args)
	}
	c := Conditions{Args: []any{"before"}}
	c.Add(`a = ? OR b = ?`, "what?", 2)
	c.Add(`c IS NULL`)
	limit := c.Bind(51)
	if got := c.Where(); got != ` WHERE (a = $2 OR b = $3) AND (c IS NULL)` || limit != "$4" {
		t.Errorf("rendered %q, limit %s", got, limit)
	}
	if diff := cmp.Diff([]any{"before", "what?", 2, 51}, c.Args); diff != "" {
		t.Errorf("arguments:\n%s", diff)
	}
}
