package console

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestTotalOfAList(t *testing.T) {
	t.Parallel()
	c := &Console{Options: Options{CountPatience: time.Minute}}
	hasty := &Console{Options: Options{CountPatience: time.Millisecond}}
	exactly := func(n int) func(context.Context, string, int) (int, error) {
		return func(_ context.Context, _ string, limit int) (int, error) { return min(n, limit), nil }
	}
	endless := func(ctx context.Context, _ string, _ int) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	for _, test := range []struct {
		name    string
		console *Console
		count   func(context.Context, string, int) (int, error)
		shown   int
		all     bool
		want    string
	}{
		{"one", c, exactly(1), 1, true, "1 loan"},
		{"none", c, exactly(0), 0, true, "0 loans"},
		{"a page of many", c, exactly(1204), 50, false, "1,204 loans"},
		{"the most", c, exactly(10_000), 50, false, "10,000 loans"},
		{"more than the most", c, exactly(20_000), 50, false, "10,000+ loans"},
		{"given up", hasty, endless, 50, false, "50+ loans"},
		{"given up, but all are shown", hasty, endless, 7, true, "7 loans"},
	} {
		all, err := startCount(t.Context(), test.console, "", test.count).with(test.shown, test.all)
		if got := all.in("loan", "loans"); got != test.want || err != nil {
			t.Errorf("%s: %q, %v; want %q", test.name, got, err, test.want)
		}
	}
	broken := errors.New("the database is away")
	failing := func(context.Context, string, int) (int, error) { return 0, broken }
	if _, err := startCount(t.Context(), c, "", failing).with(50, false); !errors.Is(err, broken) {
		t.Errorf("a count that failed: %v", err)
	}
}
