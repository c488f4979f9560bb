package views

import "testing"

func TestValueWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`["all"]`: "all", `[]`: "none", `["a","b"]`: "a, b", `[1]`: "[1]", `[x`: "[x", "12": "12",
	} {
		if got := valueWords(text); got != want {
			t.Errorf("%s reads %q, want %q", text, got, want)
		}
	}
}

func TestStatusWord(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]string{
		"FUNDING_SETTLED": "Settled", "CANCELLED": "Cancelled", "DOCUMENT_SENT": "Sent",
		"cancelled": "Cancelled", "Approved": "Approved", "Completed": "Completed",
	} {
		if got := StatusWord(status); got != want {
			t.Errorf("%s reads %q, want %q", status, got, want)
		}
	}
}

func TestActionWords(t *testing.T) {
	t.Parallel()
	for action, want := range map[string]string{
		"subscription.pause":       "Paused a subscription",
		"bulk_resend.some_new_act": "Bulk re-send: some new act",
		"nothing":                  "nothing",
	} {
		if got := ActionWords(action); got != want {
			t.Errorf("%s is called %q, want %q", action, got, want)
		}
	}
}
