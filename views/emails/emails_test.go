package emails

import (
	"strings"
	"testing"

	"drawbridge/internal/email"
)

func TestEmailAttemptWords(t *testing.T) {
	t.Parallel()
	tests := []struct {
		attempt email.Attempt
		// want is the outcome, the server's answer, the encryption, and the stage.
		want [4]string
	}{
		{email.Attempt{}, [4]string{"under way", "", "not encrypted", ""}},
		{
			email.Attempt{Outcome: "sent", Stage: "hand_over", ReplyCode: 250, Reply: "OK", TLS: "TLS 1.3"},
			[4]string{"accepted", "250 OK", "TLS 1.3", ""},
		},
		{
			email.Attempt{Outcome: "temporary", Stage: "auth", ReplyCode: 454, Reply: "later"},
			[4]string{"refused for now", "454 later", "not encrypted", "signing in"},
		},
		{
			email.Attempt{Outcome: "temporary", Stage: "connect"},
			[4]string{"no answer", "", "not encrypted", "connecting"},
		},
		{
			email.Attempt{Outcome: "permanent", Stage: "sender", ReplyCode: 550, Reply: "no"},
			[4]string{"refused for good", "550 no", "not encrypted", "naming the sender"},
		},
		{
			email.Attempt{Outcome: "interrupted", Stage: "data", TLS: "TLS 1.2"},
			[4]string{"interrupted before anything was sent", "", "TLS 1.2", "transmitting the message"},
		},
		{
			email.Attempt{Outcome: "unknown", Stage: "hand_over"},
			[4]string{"outcome unknown", "", "not encrypted", "handing the message over"},
		},
		{
			email.Attempt{Outcome: "invented", Stage: "new"},
			[4]string{"invented", "", "not encrypted", "new"},
		},
	}
	for _, test := range tests {
		var html strings.Builder
		if err := attempt(test.attempt).Render(t.Context(), &html); err != nil {
			t.Fatal(err)
		}
		for i, before := range []string{
			"<h3>Attempt 0: ", "answered <code>", "Connection <b>", "Ended while <b>",
		} {
			_, rest, _ := strings.Cut(html.String(), before)
			if got, _, _ := strings.Cut(rest, "</"); got != test.want[i] {
				t.Errorf("%q at %q says %q, want %q",
					test.attempt.Outcome, test.attempt.Stage, got, test.want[i])
			}
		}
	}
}
