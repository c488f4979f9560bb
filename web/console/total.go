package console

import (
	"context"
	"errors"
	"time"

	"drawbridge/views/ui"
)

const (
	// maxCount is the highest exact count of a list.
	maxCount = 10_000
	// countPatience is how long a list waits for its count: a reader came for the
	// rows, and a live page counts again at every look.
	countPatience = 50 * time.Millisecond
)

// errSlowCount says that a count took too long.
var errSlowCount = errors.New("the count took too long")

// total is how many rows a list has on all pages.
type total struct {
	count int
	// more tells that there are more than that.
	more bool
}

// in words the total: "1 loan", "1,204 loans", "10,000+ loans".
func (t total) in(one, many string) string {
	if t.more {
		return ui.Number(t.count) + "+ " + many
	}
	return counted(t.count, one, many)
}

// counting is a count under way. It ends by itself, also when nobody asks for it.
type counting struct{ answer <-chan countAnswer }

type countAnswer struct {
	count int
	err   error
}

// startCount counts what matches a filter while its rows are read, for as long as
// a list waits for it.
func startCount[Filter any](
	ctx context.Context, c *Console, filter Filter,
	count func(ctx context.Context, filter Filter, limit int) (int, error),
) counting {
	answer := make(chan countAnswer, 1)
	go func() {
		patient, cancel := context.WithTimeout(ctx, c.CountPatience)
		defer cancel()
		count, err := count(patient, filter, maxCount+1)
		// The server's clock may end it a moment before ours.
		if err != nil && (patient.Err() != nil || errors.Is(err, context.DeadlineExceeded)) {
			err = errSlowCount
		}
		answer <- countAnswer{count, err}
	}()
	return counting{answer}
}

// with returns the total of a list of which shown rows are on this page, all of
// them or some. A count that was given up makes it more than those.
func (c counting) with(shown int, all bool) (total, error) {
	if all {
		return total{count: shown}, nil
	}
	got := <-c.answer
	switch {
	case errors.Is(got.err, errSlowCount):
		return total{count: shown, more: true}, nil
	case got.err != nil:
		return total{}, got.err
	}
	return total{count: min(got.count, maxCount), more: got.count > maxCount}, nil
}
