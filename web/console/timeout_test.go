package console_test

import (
	"strings"
	"testing"

	"drawbridge/views/paths"
)

// TestPagesNameTheConfiguredTimeout expects the configured timeout of endpoints on the pages.
func TestPagesNameTheConfiguredTimeout(t *testing.T) {
	t.Parallel()
	r := newHarness(t, "DRAWBRIDGE_WEBHOOK_TIMEOUT", "45s")
	b := r.asOperator()
	for path, want := range map[string]string{
		paths.SubscriptionNew: "it has 45 s to answer 2xx",
		paths.Receiver:        "Nothing for 46 s: the attempt times out after 45 s.",
	} {
		if got := b.get(path).text("main"); !strings.Contains(got, want) {
			t.Errorf("%s does not say %q but %q", path, want, got)
		}
	}
}
