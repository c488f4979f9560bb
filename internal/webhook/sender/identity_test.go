package sender

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"drawbridge/internal/lending"
)

// Missing fields are omitted; text that a header cannot carry is percent-encoded.
func TestIdentityHeaders(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		identity Identity
		want     map[string]string
	}{
		{
			"complete",
			Identity{
				Kind: "task.created", UID: "e", Sequence: 12, Merchant: "m", Subject: "task/t",
				Reference: "a-Z_0.9~ /%\u00fc\n",
			},
			map[string]string{
				"x-drawbridge-event": "task.created", "x-drawbridge-event-id": "e",
				"x-drawbridge-sequence": "12", "x-drawbridge-merchant": "m",
				"x-drawbridge-subject":   "task/t",
				"x-drawbridge-reference": "a-Z_0.9~%20%2F%25%C3%BC%0A",
			},
		},
		{
			"not numbered yet",
			Identity{Kind: "task.created", UID: "e", Merchant: "m"},
			map[string]string{
				"x-drawbridge-event": "task.created", "x-drawbridge-event-id": "e",
				"x-drawbridge-merchant": "m",
			},
		},
		{
			"a test", TestIdentity(lending.EventTaskCreated, "e"),
			map[string]string{
				"x-drawbridge-event": "task.created", "x-drawbridge-event-id": "e",
				"x-drawbridge-subject": "application/00000000-0000-4000-8000-000000000000",
			},
		},
	} {
		got := map[string]string{}
		for _, header := range test.identity.Headers() {
			got[header.Name] = header.Value
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}
