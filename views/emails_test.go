package views_test

import (
	"testing"
	"time"

	"github.com/a-h/templ"
	"github.com/google/uuid"

	"drawbridge/internal/email"
	"drawbridge/views/emails"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

func sampleEmail(word string) email.Email {
	due := sampleTime.Add(time.Minute)
	return email.Email{
		EmailUID: uuid.MustParse(sampleUID), Kind: email.KindTask, ToName: word, ToAddress: word,
		Subject: word, State: email.StateQueued, Reason: word, AttemptCount: 1, NextAttemptAt: &due,
		ApplicationUID: uuid.NullUUID{UUID: uuid.MustParse(sampleApplication), Valid: true},
		ResendOf:       uuid.NullUUID{UUID: uuid.MustParse(sampleUID), Valid: true},
		ResentBy:       word, ResendReason: word, CreatedAt: sampleTime,
	}
}

func sampleEmailDetail(word string) email.Detail {
	written := sampleTime
	detail := email.Detail{
		Email: sampleEmail(word), MessageID: word, RenderedAt: &written, HTML: word, Text: word,
		Source: word + "\r\n\r\n" + word, Resends: []email.Email{sampleEmail(word)},
		Attempts: []email.Attempt{
			{
				Number: 1, StartedAt: sampleTime, Outcome: email.OutcomeTemporary,
				Stage: email.StageRecipient, ReplyCode: 451, Reply: word, Server: word, TLS: word,
			},
			{
				Number: 2, StartedAt: sampleTime, Outcome: email.Outcome(word), Stage: email.Stage(word),
				Error: word, Server: word,
			},
		},
	}
	detail.FinishedAt = &written
	return detail
}

// emailSamplePages returns the pages about e-mails, with the word that a hostile test
// plants everywhere.
func emailSamplePages(word string) map[string]templ.Component {
	frame := sampleFrame(word)
	frame.Live = false
	frame.May = func(string) bool { return true }
	list := ui.ListProps{
		Path: paths.Emails, Intro: word, Buttons: emails.Buttons(),
		Tabs:   []ui.Tab{{Label: "All", Href: paths.Emails, Current: true}},
		Active: []ui.ActiveFilter{{Label: word, Href: paths.Emails}},
		Fields: []ui.Control{{
			ID: "filter-kind", Label: "Kind", Error: word, Name: "kind",
			Options: []ui.Option{{Value: word, Label: word}},
		}},
		Region: ui.ListRegion{
			Path: paths.Emails, Rows: 1, Older: paths.Where(paths.Emails, "cursor", word),
			Table: ui.Table(emails.Table([]email.Email{sampleEmail(word)})),
			Pick:  &ui.Pick{Action: paths.EmailsResend, Filter: word, Buttons: ui.ResendPicked()},
		},
	}
	form := ui.Confirmation{
		Title: "Re-send", About: word, Effects: []string{word}, Risks: []string{word}, Reason: word,
		Action: paths.To(paths.EmailResend, sampleUID), Cancel: paths.Emails, Submit: "Re-send",
	}
	settings := ui.Confirmation{
		Action: paths.MailSettings, Cancel: paths.MailSettings, Submit: "Save", NoReason: true,
		Controls: []ui.Control{{
			Name: "lender_name", Label: "Lender's name", Value: word, Hint: word, Error: word,
		}},
	}
	return map[string]templ.Component{
		"emails":       ui.Framed(frame, ui.List(list)),
		"email":        ui.Framed(frame, emails.Detail(sampleEmailDetail(word), &form)),
		"email-resend": ui.Framed(frame, ui.ConfirmationBody(form)),
		"email-samples": ui.Framed(frame, emails.Samples("welcome", email.Content{
			Subject: word, Text: word,
		})),
		"mail-settings": ui.Framed(frame, emails.Settings(settings)),
	}
}

func TestEmailWords(t *testing.T) {
	t.Parallel()
	states := map[string]bool{}
	for _, state := range email.States() {
		chip := emails.Chip(string(state), false)
		if states[chip.Word] || states[chip.Icon] {
			t.Errorf("%s looks like another state: %+v", state, chip)
		}
		states[chip.Word], states[chip.Icon] = true, true
	}
	if got := emails.Chip(string(email.StateFailed), true).Word; got != "Unknown" {
		t.Errorf("a failed mail that may have arrived is called %q", got)
	}
	if got := emails.Chip("invented", false).Word; got != "invented" {
		t.Errorf("a new state is called %q", got)
	}
	if got := ui.EmailKind("invented"); got != "invented" {
		t.Errorf("a new kind is called %q", got)
	}
}
