package operations

import "testing"

func TestValueWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ field, text, want string }{
		{"events", `["all"]`, "all"},
		{"headers", `[]`, "none"},
		{"merchants", `[]`, "all"},
		{"merchants", `["a","b"]`, "a, b"},
		{"rate", "0", "no limit"},
		{"rate", "20", "20"},
		{"deliveries", "0", "0"},
		{"auth", "hmac", "HMAC signature"},
		{"auth", "none", "None"},
		{"other", `[1]`, "[1]"},
		{"other", `[x`, "[x"},
		{"other", "12", "12"},
	} {
		if got := valueWords(c.field, c.text); got != c.want {
			t.Errorf("%s %s reads %q, want %q", c.field, c.text, got, c.want)
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
