package emails

import (
	"fmt"
	"time"

	"drawbridge/views/ui"
)

// EmailPage is the page of one mail.
type EmailPage struct {
	ui.Frame
	Email ui.EmailRow
	// Explanation says in plain words where the mail stands.
	Explanation ui.Diagnosis
	MessageID   string
	// Written is when the text was fixed, Finished when the state was; zero
	// before.
	Written  time.Time
	Finished time.Time
	Attempts []EmailAttempt
	// Message is what was written, nil before that.
	Message *EmailMessage
	// Origin is the uid of the mail that this one re-sends; empty for none.
	Origin string
	// Resends are the mails that re-send this one, oldest first.
	Resends []ui.EmailRow
	// Resend is the re-send form; nil where the mail cannot be re-sent.
	Resend *EmailResendForm
}

// EmailMessage is a mail as it was written. All of it may be hostile.
type EmailMessage struct {
	// BodyURL is the rendered body, for a sandboxed frame.
	BodyURL string
	// SourceURL is the whole message to download; empty where there is none.
	SourceURL string
	Text      string
	// Headers is the header block as it goes onto the wire.
	Headers string
}

// EmailAttempt is one try to send a mail.
type EmailAttempt struct {
	Number  int
	Started time.Time
	Took    time.Duration
	// Outcome is "sent", "temporary", "permanent", "refused", "interrupted", "unknown",
	// or empty while the attempt runs.
	Outcome string
	// Stage is where the conversation ended, such as "recipient".
	Stage string
	// Code and Reply are the server's last answer, 0 and empty for none.
	Code  int
	Reply string
	Error string
	// Server is the host:port that was dialled.
	Server string
	// TLS is the protocol's version, empty without encryption.
	TLS string
}

// chip describes the outcome of an attempt; its word completes "Attempt 1:".
func (a EmailAttempt) chip() ui.ChipProps {
	switch a.Outcome {
	case "":
		return ui.ChipProps{Icon: "loader", Word: "under way", Tone: ui.Calm}
	case "sent":
		return ui.ChipProps{Icon: "circle-check", Word: "accepted", Tone: ui.Good}
	case "temporary":
		return ui.ChipProps{Icon: "refresh-cw", Word: "refused for now", Tone: ui.Warn}
	case "permanent":
		return ui.ChipProps{Icon: "circle-x", Word: "refused for good", Tone: ui.Bad}
	case "refused":
		return ui.ChipProps{
			Icon: "ban", Word: "the mail server refused us, not this e-mail",
			Tone: ui.Warn,
		}
	case "interrupted":
		return ui.ChipProps{Icon: "pause", Word: "interrupted before anything was sent", Tone: ui.Warn}
	case "unknown":
		return ui.ChipProps{Icon: "circle-help", Word: "outcome unknown", Tone: ui.Odd}
	}
	return ui.ChipProps{Icon: "circle-help", Word: a.Outcome, Tone: ui.Mute}
}

// outcome completes "Attempt 1:". Without an answer nobody refused anything.
func (a EmailAttempt) outcome() string {
	if a.Outcome == "temporary" && a.Code == 0 {
		return "no answer"
	}
	return a.chip().Word
}

// stage completes "Ended while"; it is empty where that says nothing.
func (a EmailAttempt) stage() string {
	if a.Outcome == "sent" {
		return ""
	}
	switch a.Stage {
	case "connect":
		return "connecting"
	case "tls":
		return "securing the connection"
	case "greeting":
		return "greeting"
	case "auth":
		return "signing in"
	case "sender":
		return "naming the sender"
	case "recipient":
		return "naming the recipient"
	case "data":
		return "transmitting the message"
	case "hand_over":
		return "handing the message over"
	}
	return a.Stage
}

// answer is the server's reply as it came.
func (a EmailAttempt) answer() string {
	if a.Code == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s", a.Code, a.Reply)
}

// encryption names the protocol, or says that there was none.
func (a EmailAttempt) encryption() string {
	if a.TLS == "" {
		return "not encrypted"
	}
	return a.TLS
}

// EmailResendForm is the form that re-sends one mail.
type EmailResendForm struct {
	UID  string
	Kind string
	To   string
	// Risks are what the reader should know before confirming.
	Risks []string
	// Reason and Fault return what was typed, with what is wrong about it.
	Reason string
	Fault  string
}

// EmailSamples is the page that shows how mails look.
type EmailSamples struct {
	ui.Frame
	// Tabs are the samples to switch between.
	Tabs    []ui.Tab
	Name    string
	Subject string
	Text    string
	BodyURL string
	// Settings leads to the mail settings; empty where the reader may not.
	Settings string
}

func (a EmailAttempt) elementID() string { return fmt.Sprintf("attempt-%d", a.Number) }

// emailUnderWay tells whether an attempt has begun and not ended.
func emailUnderWay(attempts []EmailAttempt) bool {
	return len(attempts) > 0 && attempts[len(attempts)-1].Outcome == ""
}

// emptyMessage says why there is nothing to show of a mail.
func emptyMessage(r ui.EmailRow) ui.EmptyProps {
	if r.State == EmailSuppressed {
		return ui.EmptyProps{
			Icon: "ban", Title: "It was never written",
			Text: "An e-mail gets its text when it is first sent, and this one never is.",
		}
	}
	return ui.EmptyProps{
		Icon: "clock", Title: "It is not written yet",
		Text: "An e-mail gets its text with the first attempt. Reload the page in a moment.",
	}
}

// finishedLabel names the time of a final state.
func finishedLabel(state string) string {
	switch state {
	case EmailSent:
		return "Sent"
	case EmailFailed:
		return "Given up"
	}
	return "Finished"
}
