package health

import (
	"time"

	"github.com/lib/pq"
)

// bounds are the upper bounds of a histogram's buckets, in milliseconds; one more bucket
// has no upper bound. From 2 ms to 38 s each is at most half as large again as the one
// before, so that a percentile there is accurate to within that.
var bounds = []int{
	1, 2, 3, 4, 6, 8, 10, 14, 20, 28, 40, 56, 80, 110, 150, 210, 300, 420, 600, 850, 1200, 1700,
	2400, 3400, 4800, 6800, 9600, 13500, 19000, 27000, 38000, 60000,
}

// Histogram counts durations by bucket. The zero Histogram is empty.
type Histogram struct{ counts []int64 }

// Bounds are the upper bounds of the buckets except the last, which has none.
func Bounds() []time.Duration {
	lengths := make([]time.Duration, len(bounds))
	for i, bound := range bounds {
		lengths[i] = time.Duration(bound) * time.Millisecond
	}
	return lengths
}

// Scan reads a latency column of the summaries.
func (h *Histogram) Scan(value any) error { return (*pq.Int64Array)(&h.counts).Scan(value) }

// Observe adds count durations of the same length; a negative count removes them.
func (h *Histogram) Observe(took time.Duration, count int) {
	h.grow()
	h.counts[bucket(took)] += int64(count)
}

// Add adds another histogram.
func (h *Histogram) Add(other Histogram) {
	h.grow()
	for i, count := range other.counts {
		h.counts[min(i, len(bounds))] += count
	}
}

func (h *Histogram) grow() {
	if h.counts == nil {
		h.counts = make([]int64, len(bounds)+1)
	}
}

// bucket returns the index of a duration's bucket; one equal to a bound falls below it.
func bucket(took time.Duration) int {
	for i, bound := range bounds {
		if took <= time.Duration(bound)*time.Millisecond {
			return i
		}
	}
	return len(bounds)
}

// Count returns how many durations the histogram holds.
func (h Histogram) Count() int64 {
	var total int64
	for _, count := range h.counts {
		total += max(count, 0)
	}
	return total
}

// Percentile returns the duration below which a share of all durations stays, from above
// 0 to 1, interpolated within its bucket; zero when the histogram is empty. Durations
// above the last bound count as that bound.
func (h Histogram) Percentile(share float64) time.Duration {
	rank := share * float64(h.Count())
	if rank <= 0 {
		return 0
	}
	below := 0.0
	for i, count := range h.counts {
		if count <= 0 {
			continue
		}
		if below+float64(count) >= rank {
			low, high := edges(i)
			return low + time.Duration(float64(high-low)*(rank-below)/float64(count))
		}
		below += float64(count)
	}
	_, high := edges(len(bounds))
	return high
}

// edges returns the bounds of a bucket.
func edges(at int) (low, high time.Duration) {
	if at > 0 {
		low = time.Duration(bounds[at-1]) * time.Millisecond
	}
	return low, time.Duration(bounds[min(at, len(bounds)-1)]) * time.Millisecond
}

// text renders the histogram as a Postgres array.
func (h Histogram) text() string {
	h.grow()
	value, err := pq.Int64Array(h.counts).Value()
	text, ok := value.(string)
	if err != nil || !ok {
		// Integers can always be rendered.
		panic("webhook: a histogram cannot be written")
	}
	return text
}
