package network_test

import (
	"testing"

	"drawbridge/internal/network"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"192.0.2.7":          "192.0.2.7",
		"::ffff:192.0.2.7":   "192.0.2.7",
		"2001:db8:1:2:3::4":  "2001:db8:1:2::/64",
		"2001:db8:1:2::9%e0": "2001:db8:1:2::/64",
		"2001:db8:1:3::4":    "2001:db8:1:3::/64",
		"nobody":             "nobody",
	} {
		if got := network.Of(address); got != want {
			t.Errorf("Of(%q) = %q, want %q", address, got, want)
		}
	}
}
