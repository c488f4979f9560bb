package ui

import (
	"strings"
	"testing"
	"time"

	"drawbridge/internal/webhook/delivery"
)

func TestPhaseBar(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	tests := []struct {
		name    string
		phases  delivery.Attempt
		longest time.Duration
		want    string
	}{
		{
			"all phases",
			delivery.Attempt{
				DNS: 10 * ms, Connect: 20 * ms, TLS: 30 * ms, FirstByte: 30 * ms, Duration: 100 * ms,
			},
			100 * ms,
			"DNS 0+100, Connect 100+200, TLS 300+300, Wait 600+300, Body 900+100",
		},
		{
			"reused connection",
			delivery.Attempt{FirstByte: 50 * ms, Duration: 50 * ms},
			100 * ms,
			"Wait 0+500",
		},
		{
			"timed out",
			delivery.Attempt{Connect: 10 * ms, Duration: 100 * ms},
			100 * ms,
			"Connect 0+100, No answer 100+900",
		},
		{"never connected", delivery.Attempt{Duration: 100 * ms}, 200 * ms, "No connection 0+500"},
		{
			"too short to see",
			delivery.Attempt{DNS: 1, FirstByte: 100 * ms, Duration: 100*ms + 1},
			100 * ms,
			"DNS 0+2, Wait 0+1000",
		},
		{"nothing measured", delivery.Attempt{}, 0, ""},
	}
	for _, test := range tests {
		var got []string
		for _, part := range (AttemptView{Attempt: test.phases}).bar(test.longest) {
			got = append(got, part.name+" "+Number(part.x)+"+"+Number(part.width))
		}
		want := strings.ReplaceAll(test.want, "+1000", "+1,000")
		if joined := strings.Join(got, ", "); joined != want {
			t.Errorf("%s: %s, want %s", test.name, joined, want)
		}
	}
}
