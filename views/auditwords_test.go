package views

import "testing"

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
