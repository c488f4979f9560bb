package emails

import (
	"strings"
	"testing"
)

func TestEmailAttemptWords(t *testing.T) {
	t.Parallel()
	tests := []struct {
		attempt EmailAttempt
		want    string
	}{
		{EmailAttempt{}, "under way||not encrypted|"},
		{
			EmailAttempt{Outcome: "sent", Stage: "hand_over", Code: 250, Reply: "OK", TLS: "TLS 1.3"},
			"accepted|250 OK|TLS 1.3|",
		},
		{
			EmailAttempt{Outcome: "temporary", Stage: "auth", Code: 454, Reply: "later"},
			"refused for now|454 later|not encrypted|signing in",
		},
		{
			EmailAttempt{Outcome: "temporary", Stage: "connect"},
			"no answer||not encrypted|connecting",
		},
		{
			EmailAttempt{Outcome: "permanent", Stage: "sender", Code: 550, Reply: "no"},
			"refused for good|550 no|not encrypted|naming the sender",
		},
		{
			EmailAttempt{Outcome: "interrupted", Stage: "data", TLS: "TLS 1.2"},
			"interrupted before anything was sent||TLS 1.2|transmitting the message",
		},
		{
			EmailAttempt{Outcome: "unknown", Stage: "hand_over"},
			"outcome unknown||not encrypted|handing the message over",
		},
		{EmailAttempt{Outcome: "invented", Stage: "new"}, "invented||not encrypted|new"},
	}
	for _, test := range tests {
		a := test.attempt
		got := strings.Join([]string{a.outcome(), a.answer(), a.encryption(), a.stage()}, "|")
		if got != test.want {
			t.Errorf("%q at %q says %q, want %q", a.Outcome, a.Stage, got, test.want)
		}
	}
}
