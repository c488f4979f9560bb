package views_test

import (
	"testing"
	"time"

	"github.com/a-h/templ"

	"drawbridge/views/emails"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

func sampleEmailRow(word string) ui.EmailRow {
	return ui.EmailRow{
		UID: sampleUID, Kind: "task", Name: word, To: word, Subject: word,
		Application: sampleApplication, State: emails.EmailQueued, Reason: word, Attempts: 1,
		NextAttempt: sampleTime.Add(time.Minute), Created: sampleTime, Resend: true, By: word, Why: word,
	}
}

func sampleEmail(word string) emails.EmailPage {
	frame := sampleFrame(word)
	frame.Live = false
	return emails.EmailPage{
		Frame: frame, Email: sampleEmailRow(word), MessageID: word, Written: sampleTime,
		Finished:    sampleTime,
		Explanation: ui.Diagnosis{Tone: ui.Odd, Title: "Unknown", Text: word, Next: "Ask."},
		Attempts: []emails.EmailAttempt{
			{
				Number: 1, Started: sampleTime, Took: time.Second, Outcome: "temporary",
				Stage: "recipient", Code: 451, Reply: word, Server: word, TLS: word,
			},
			{Number: 2, Started: sampleTime, Outcome: word, Stage: word, Error: word, Server: word},
		},
		Message: &emails.EmailMessage{
			BodyURL: paths.To(paths.EmailBody, sampleUID), SourceURL: paths.To(paths.EmailSource, sampleUID),
			Text: word, Headers: word,
		},
		Origin: sampleUID, Resends: []ui.EmailRow{sampleEmailRow(word)},
		Resend: &emails.EmailResendForm{
			UID: sampleUID, Kind: word, To: word, Risks: []string{word}, Reason: word,
		},
	}
}

// emailSamplePages are the pages about e-mails, with the word that a hostile
// test plants everywhere.
func emailSamplePages(word string) map[string]templ.Component {
	frame := sampleFrame(word)
	frame.Live = false
	list := emails.EmailList{
		Frame: frame, Rows: []ui.EmailRow{sampleEmailRow(word)}, Filter: emails.EmailFilter{To: word},
		Tabs:   []ui.Tab{{Label: "All", Href: paths.Emails, Current: true}},
		Active: []ui.ActiveFilter{{Label: word, Href: paths.Emails}},
		Kinds:  []ui.Option{{Value: word, Label: word}}, Older: paths.Where(paths.Emails, "cursor", word),
		Settings: paths.MailSettings,
	}
	wrong := list
	wrong.Filter.Faults = map[string]string{"to": word, "state": word}
	return map[string]templ.Component{
		"emails":       emails.EmailListPage(list),
		"emails-wrong": emails.EmailListPage(wrong),
		"email":        emails.EmailDetailPage(sampleEmail(word)),
		"email-resend": emails.EmailResendPage(frame, emails.EmailResendForm{
			UID: sampleUID, Kind: word, To: word, Risks: []string{word}, Reason: word, Fault: word,
		}),
		"email-samples": emails.EmailSamplesPage(emails.EmailSamples{
			Frame: frame, Tabs: []ui.Tab{{
				Label: "Welcome",
				Href:  paths.Where(paths.EmailSamples, "mail", word), Current: true,
			}},
			Name: word, Subject: word, Text: word, BodyURL: paths.To(paths.EmailSample, word),
			Settings: paths.MailSettings,
		}),
		"mail-settings": emails.MailSettingsPage(emails.MailSettings{
			Frame: frame, SampleURL: paths.To(paths.EmailSample, word), Form: emails.MailSettingsForm{
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
		emails.EmailQueued, emails.EmailSent, emails.EmailFailed, emails.EmailSuppressed,
		emails.EmailNotSent,
	} {
		chip := emails.EmailChip(state, false)
		if states[chip.Word] || states[chip.Icon] {
			t.Errorf("%s looks like another state: %+v", state, chip)
		}
		states[chip.Word], states[chip.Icon] = true, true
	}
	if got := emails.EmailChip(emails.EmailFailed, true).Word; got != "Unknown" {
		t.Errorf("a failed mail that may have arrived is called %q", got)
	}
	if got := emails.EmailChip("invented", false).Word; got != "invented" {
		t.Errorf("a new state is called %q", got)
	}
	if got := ui.EmailKind("invented"); got != "invented" {
		t.Errorf("a new kind is called %q", got)
	}
}
