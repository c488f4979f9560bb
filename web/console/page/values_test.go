package page_test

import (
	"strings"
	"testing"
	"time"

	"drawbridge/web/console/page"
)

// Where clocks are set forward or back, a time in a form means no instant, or two.
func TestReadTimeWhereClocksAreSet(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ zone, text, want, problem string }{
		{"America/New_York", "2026-03-08T01:59", "2026-03-08T06:59:00Z", ""},
		{"America/New_York", "2026-03-08T02:30", "", "skip this time"},
		{"America/New_York", "2026-03-08T03:00", "2026-03-08T07:00:00Z", ""},
		{"America/New_York", "2026-11-01T00:59:59.5", "2026-11-01T04:59:59.5Z", ""},
		{"America/New_York", "2026-11-01T01:30", "", "show this time twice"},
		{"America/New_York", "2026-11-01T01:30:00-04:00", "2026-11-01T05:30:00Z", ""},
		{"America/New_York", "2026-11-01T02:00", "2026-11-01T07:00:00Z", ""},
		{"Australia/Sydney", "2026-04-05T02:30", "", "show this time twice"},
		{"Europe/Berlin", "2026-03-29", "2026-03-28T23:00:00Z", ""},
		{"America/Havana", "2026-11-01", "2026-11-01T04:00:00Z", ""},
		{"America/Santiago", "2026-09-06", "2026-09-06T04:00:00Z", ""},
		{"UTC", "2026-11-01T01:30", "2026-11-01T01:30:00Z", ""},
	} {
		zone, err := time.LoadLocation(test.zone)
		if err != nil {
			t.Fatal(err)
		}
		wrong, got := map[string]string{}, ""
		if at := page.ReadTime(wrong, "since", test.text, zone); !at.IsZero() {
			got = at.UTC().Format(time.RFC3339Nano)
		}
		problem := wrong["since"]
		if got != test.want || (problem == "") != (test.problem == "") ||
			!strings.Contains(problem, test.problem) {
			t.Errorf("%s in %s is %q, %q", test.text, test.zone, got, problem)
		}
	}
}
