package list

import (
	"context"
	"errors"
	"time"

	"drawbridge/views/ui"
)

const (
	// maxCount is the highest exact count of a list.
	maxCount = 10_000
	// countTimeout is how long a list waits for its count: readers want the rows, and a live
	// page counts again at every poll.
	countTimeout = 50 * time.Millisecond
)

// errSlowCount says that a count took too long.
var errSlowCount = errors.New("the count took too long")

// total is how many rows a list has on all pages.
type total struct {
	count int
	// more tells that there are more than that.
	more bool
}

// in formats the total: "1 loan", "1,204 loans", "10,000+ loans".
func (t total) in(one, many string) string {
	return ui.If(t.more, ui.Number(t.count)+"+ "+many, ui.Plural(t.count, one, many))
}

// counting is a count in progress. It ends by itself, even if its result is never read.
type counting <-chan countAnswer

type countAnswer struct {
	count int
	err   error
}

// startCount starts counting the rows that match a filter while they are loaded. The count
// ends after CountTimeout.
func (e *Engine) startCount(
	ctx context.Context, count func(ctx context.Context, limit int) (int, error),
) counting {
	answer := make(chan countAnswer, 1)
	if count == nil {
		return answer
	}
	go func() {
		count, err := e.countSoon(ctx, func(ctx context.Context) (int, error) {
			return count(ctx, maxCount+1)
		})
		answer <- countAnswer{count, err}
	}()
	return answer
}

// countSoon counts for at most CountTimeout. Error: errSlowCount.
func (e *Engine) countSoon(
	ctx context.Context, count func(ctx context.Context) (int, error),
) (int, error) {
	timeout := e.CountTimeout
	if timeout == 0 {
		timeout = countTimeout
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	found, err := count(bounded)
	// The server's timeout may fire slightly before ours.
	if err != nil && (bounded.Err() != nil || errors.Is(err, context.DeadlineExceeded)) {
		err = errSlowCount
	}
	return found, err
}

// CountSoon counts for at most CountTimeout and returns other if that was too short, for
// example the last known count.
func (e *Engine) CountSoon(
	ctx context.Context, other int, count func(ctx context.Context) (int, error),
) (int, error) {
	found, err := e.countSoon(ctx, count)
	if errors.Is(err, errSlowCount) {
		return other, nil
	}
	return found, err
}

// with returns the total of a list of which this page shows `shown` rows; all means that
// these are all rows. If the count was given up, the total is "more than shown".
func (c counting) with(shown int, all bool) (total, error) {
	if all {
		return total{count: shown}, nil
	}
	got := <-c
	switch {
	case errors.Is(got.err, errSlowCount):
		return total{count: shown, more: true}, nil
	case got.err != nil:
		return total{}, got.err
	}
	return total{count: min(got.count, maxCount), more: got.count > maxCount}, nil
}
