package list

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestTotalOfAList(t *testing.T) {
	t.Parallel()
	c := &Engine{CountTimeout: time.Minute}
	hasty := &Engine{CountTimeout: time.Millisecond}
	exactly := func(n int) func(context.Context, int) (int, error) {
		return func(_ context.Context, limit int) (int, error) { return min(n, limit), nil }
	}
	endless := func(ctx context.Context, _ int) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	for _, test := range []struct {
		name   string
		engine *Engine
		count  func(context.Context, int) (int, error)
		shown  int
		all    bool
		want   string
	}{
		{"one", c, exactly(1), 1, true, "1 loan"},
		{"none", c, exactly(0), 0, true, "0 loans"},
		{"a page of many", c, exactly(1204), 50, false, "1,204 loans"},
		{"the most", c, exactly(10_000), 50, false, "10,000 loans"},
		{"more than the most", c, exactly(20_000), 50, false, "10,000+ loans"},
		{"given up", hasty, endless, 50, false, "50+ loans"},
		{"given up, but all are shown", hasty, endless, 7, true, "7 loans"},
	} {
		all, err := test.engine.startCount(t.Context(), test.count).with(test.shown, test.all)
		if got := all.in("loan", "loans"); got != test.want || err != nil {
			t.Errorf("%s: %q, %v; want %q", test.name, got, err, test.want)
		}
	}
	broken := errors.New("the database is away")
	failing := func(context.Context, int) (int, error) { return 0, broken }
	if _, err := c.startCount(t.Context(), failing).with(50, false); !errors.Is(err, broken) {
		t.Errorf("a count that failed: %v", err)
	}
}
