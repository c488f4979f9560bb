package docs

import (
	"fmt"
	"time"
)

// Timing is the part of an operator's timing of deliveries that partners notice.
type Timing struct {
	// Timeout bounds a whole attempt.
	Timeout time.Duration
	// RetryAfterMax is how far Retry-After may postpone an attempt; zero ignores Retry-After.
	RetryAfterMax time.Duration
}

// The values that the guides are written with.
const (
	writtenTimeout    = 30 * time.Second
	writtenRetryAfter = time.Hour

	answerWithin = "2xx status within 30 seconds"
	confirmBy    = "from 200 to 299 within 30 seconds"
	heedsAfter   = "On 429 and 503 your\n" +
		"  `Retry-After` can move the next attempt later, up to an hour."
)

// words returns, as pairs, the sentences of the guides that are not true and their replacements.
func (t *Timing) words() (pairs []string) {
	if t == nil {
		return nil
	}
	if t.Timeout != writtenTimeout {
		pairs = append(pairs, answerWithin, "2xx status within "+spell(t.Timeout),
			confirmBy, "from 200 to 299 within "+spell(t.Timeout))
	}
	switch t.RetryAfterMax {
	case writtenRetryAfter:
	case 0:
		pairs = append(pairs, heedsAfter, "Drawbridge ignores your `Retry-After`.")
	default:
		pairs = append(pairs, heedsAfter, "On 429 and 503 your\n  `Retry-After` can move the next "+
			"attempt later, up to "+spell(t.RetryAfterMax)+".")
	}
	return pairs
}

// spell formats a duration in its largest whole unit.
func spell(d time.Duration) string {
	units := []struct {
		name string
		of   time.Duration
	}{
		{"hour", time.Hour},
		{"minute", time.Minute},
		{"second", time.Second},
		{"millisecond", time.Millisecond},
	}
	for _, unit := range units {
		switch {
		case d == unit.of:
			return "1 " + unit.name
		case d >= unit.of && d%unit.of == 0:
			return fmt.Sprintf("%d %ss", d/unit.of, unit.name)
		}
	}
	return d.String()
}
