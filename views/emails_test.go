package views

import (
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"
)

func sampleEmailRow(word string) EmailRow {
	return EmailRow{
		UID: sampleUID, Kind: "task", Name: word, To: word, Subject: word,
		Application: sampleApplication, State: EmailQueued, Reason: word, Attempts: 1,
		NextAttempt: sampleTime.Add(time.Minute), Created: sampleTime, Resend: true, By: word, Why: word,
	}
}

func sampleEmail(word string) EmailPage {
	frame := sampleFrame(word)
	frame.Live = false
	return EmailPage{
		Frame: frame, Email: sampleEmailRow(word), MessageID: word, Written: sampleTime,
		Finished:    sampleTime,
		Explanation: Diagnosis{Tone: Odd, Title: "Unknown", Text: word, Next: "Ask."},
		Attempts: []EmailAttempt{
			{
				Number: 1, Started: sampleTime, Took: time.Second, Outcome: "temporary",
				Stage: "recipient", Code: 451, Reply: word, Server: word, TLS: word,
			},
			{Number: 2, Started: sampleTime, Outcome: word, Stage: word, Error: word, Server: word},
		},
		Message: &EmailMessage{
			BodyURL: EmailBodyPath(sampleUID), SourceURL: EmailSourcePath(sampleUID),
			Text: word, Headers: word,
		},
		Origin: sampleUID, Resends: []EmailRow{sampleEmailRow(word)},
		Resend: &EmailResendForm{
			UID: sampleUID, Kind: word, To: word, Risks: []string{word}, Reason: word,
		},
	}
}

// emailSamplePages are the pages about e-mails, with the word that a hostile
// test plants everywhere.
func emailSamplePages(word string) map[string]templ.Component {
	frame := sampleFrame(word)
	frame.Live = false
	list := EmailList{
		Frame: frame, Rows: []EmailRow{sampleEmailRow(word)}, Filter: EmailFilter{To: word},
		Tabs:   []Tab{{Label: "All", Href: PathEmails, Current: true}},
		Active: []ActiveFilter{{Label: word, Href: PathEmails}},
		Kinds:  []Option{{Value: word, Label: word}}, Older: EmailsOf("cursor", word),
		Settings: PathMailSettings,
	}
	wrong := list
	wrong.Filter.Faults = map[string]string{"to": word, "state": word}
	return map[string]templ.Component{
		"emails":       EmailListPage(list),
		"emails-wrong": EmailListPage(wrong),
		"email":        EmailDetailPage(sampleEmail(word)),
		"email-resend": EmailResendPage(frame, EmailResendForm{
			UID: sampleUID, Kind: word, To: word, Risks: []string{word}, Reason: word, Fault: word,
		}),
		"email-samples": EmailSamplesPage(EmailSamples{
			Frame: frame, Tabs: []Tab{{Label: "Welcome", Href: EmailSamplesOf(word), Current: true}},
			Name: word, Subject: word, Text: word, BodyURL: EmailSamplePath(word),
			Settings: PathMailSettings,
		}),
		"mail-settings": MailSettingsPage(MailSettings{
			Frame: frame, SampleURL: EmailSamplePath(word), Form: MailSettingsForm{
				LenderName: word, PrimaryColor: word, AccentColor: word, ReplyTo: word, AlertTo: word,
				Faults: map[string]string{"reply_to": word, "alert_to": word},
			},
		}),
	}
}

func TestEmailWords(t *testing.T) {
	t.Parallel()
	states := map[string]bool{}
	for _, state := range []string{
		EmailQueued, EmailSent, EmailFailed, EmailSuppressed, EmailNotSent,
	} {
		chip := EmailChip(state, false)
		if states[chip.Word] || states[chip.Icon] {
			t.Errorf("%s looks like another state: %+v", state, chip)
		}
		states[chip.Word], states[chip.Icon] = true, true
	}
	if got := EmailChip(EmailFailed, true).Word; got != "Unknown" {
		t.Errorf("a failed mail that may have arrived is called %q", got)
	}
	if got := EmailChip("invented", false).Word; got != "invented" {
		t.Errorf("a new state is called %q", got)
	}
	if got := EmailKind("invented"); got != "invented" {
		t.Errorf("a new kind is called %q", got)
	}
}

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
