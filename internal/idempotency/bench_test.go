package idempotency_test

import (
	"strconv"
	"testing"

	"drawbridge/internal/idempotency"
)

// BenchmarkRun shows what a key costs in addition to the operation itself.
func BenchmarkRun(b *testing.B) {
	tests := []struct {
		name string
		key  func(i int) string
	}{
		{"without a key", func(int) string { return "" }},
		{"first use of a key", strconv.Itoa},
		{"replay", func(int) string { return "replayed" }},
	}
	for _, test := range tests {
		b.Run(test.name, func(b *testing.B) {
			d := newDesk(b)
			var replays int
			for i := 1; b.Loop(); i++ {
				if d.mustRun(b, d.request(test.key(i), "c"), register("x")).Replayed {
					replays++
				}
			}
			b.ReportMetric(float64(replays)/float64(b.N), "replays/op")
		})
	}
}

func BenchmarkFingerprint(b *testing.B) {
	content := digest("content")
	const path = "/v2/loan/018f3b9e-7c1a-7d60-9c55-3e1f0a2b4c6d/request-draw"
	for b.Loop() {
		idempotency.NewFingerprint("POST", path, content)
	}
}
