package emails

import (
	"cmp"
	"fmt"
	"time"

	"drawbridge/internal/email"
	"drawbridge/views/ui"
)

// due returns the time of an e-mail's next attempt; zero if it waits for something other
// than its time, or if none is due.
func due(e email.Email) time.Time {
	if e.State != email.StateQueued || e.WaitsFor != email.WaitNothing || e.NextAttemptAt == nil {
		return time.Time{}
	}
	return *e.NextAttemptAt
}

var outcomes = map[email.Outcome]ui.ChipProps{
	"":                     {Icon: "loader", Word: "under way", Tone: ui.Calm},
	email.OutcomeSent:      {Icon: "circle-check", Word: "accepted", Tone: ui.Good},
	email.OutcomeTemporary: {Icon: "refresh-cw", Word: "refused for now", Tone: ui.Warn},
	email.OutcomePermanent: {Icon: "circle-x", Word: "refused for good", Tone: ui.Bad},
	email.OutcomeRefused: {
		Icon: "ban", Word: "the mail server refused us, not this e-mail", Tone: ui.Warn,
	},
	email.OutcomeInterrupted: {
		Icon: "pause", Word: "interrupted before anything was sent", Tone: ui.Warn,
	},
	email.OutcomeUnknown: {Icon: "circle-help", Word: "outcome unknown", Tone: ui.Odd},
}

// outcome describes how an attempt ended; its word completes "Attempt 1:". Without a reply,
// the word is not "refused".
func outcome(a email.Attempt) ui.ChipProps {
	chip := ui.KnownChip(outcomes, a.Outcome)
	if a.Outcome == email.OutcomeTemporary && a.ReplyCode == 0 {
		chip.Word = "no answer"
	}
	return chip
}

// stages complete "Ended while".
var stages = map[email.Stage]string{
	email.StageConnect: "connecting", email.StageTLS: "securing the connection",
	email.StageGreeting: "greeting", email.StageAuth: "signing in",
	email.StageSender: "naming the sender", email.StageRecipient: "naming the recipient",
	email.StageData: "transmitting the message", email.StageHandOver: "handing the message over",
}

// stage completes "Ended while"; it is empty if the stage says nothing.
func stage(a email.Attempt) string {
	if a.Outcome == email.OutcomeSent {
		return ""
	}
	return cmp.Or(stages[a.Stage], string(a.Stage))
}

// finished labels the time at which an e-mail reached a final state.
var finished = map[email.State]string{email.StateSent: "Sent", email.StateFailed: "Given up"}

// explanation explains the state of an e-mail in plain words, and what to do.
func explanation(detail email.Detail) ui.Diagnosis {
	explained := stateExplanation(detail)
	unsent := detail.State == email.StateFailed || detail.State == email.StateNotSent
	if unsent && explained.Next != "" && detail.ContentRemovedAt != nil {
		explained.Next = "Its text was removed, so it cannot be re-sent: reach the recipient in " +
			"another way if it is still wanted."
	}
	return explained
}

func stateExplanation(detail email.Detail) ui.Diagnosis {
	last := email.Attempt{}
	if len(detail.Attempts) > 0 {
		last = detail.Attempts[len(detail.Attempts)-1]
	}
	switch detail.State {
	case email.StateQueued:
		return queuedExplanation(detail.WaitsFor, last)
	case email.StateSent:
		return ui.Diagnosis{
			Tone: ui.Good, Title: "The mail server has accepted it",
			Text: fmt.Sprintf("It answered %d to attempt %d and is responsible for the e-mail since.",
				last.ReplyCode, last.Number),
			Next: "If it cannot be found, look in the spam folder, then ask the person who runs the mail " +
				"server for its message id.",
		}
	case email.StateFailed:
		explained := failedExplanation(detail, last)
		if detail.MadeGoodBy.Valid {
			explained.Tone, explained.Next = ui.Mute, ""
		}
		return explained
	case email.StateSuppressed:
		return ui.Diagnosis{
			Tone: ui.Mute, Title: "It was held back and is never sent", Text: ui.Sentence(detail.Reason),
			Next: "Nothing. Communications begin when an offer is accepted; what was held back " +
				"before is not sent later.",
		}
	case email.StateCaptured:
		return ui.Diagnosis{
			Tone: ui.Mute, Title: "Captured: " + detail.Reason,
			Text: "It was written as it would have been sent.",
			Next: "Nothing. A re-send is captured too.",
		}
	case email.StateNotSent:
		if detail.MayHaveArrived() {
			return failedExplanation(detail, last)
		}
		return ui.Diagnosis{
			Tone: ui.Warn, Title: "Not sent: " + detail.Reason,
			Text: "It was written, and no server was asked.",
			Next: "Set DRAWBRIDGE_SMTP_URL, start Drawbridge again, and re-send it if it is still wanted.",
		}
	}
	return ui.Diagnosis{}
}

func failedExplanation(detail email.Detail, last email.Attempt) ui.Diagnosis {
	switch {
	case detail.MayHaveArrived():
		return ui.Diagnosis{
			Tone: ui.Odd, Title: "It may or may not have arrived", Text: ui.Sentence(detail.Reason),
			Next: "Ask the recipient before you re-send it: they may get it twice.",
		}
	case last.Outcome == email.OutcomePermanent:
		next := "Check the address with the recipient; the server's answer says what it minds. "
		if detail.ApplicationUID.Valid {
			next += "The address of an application cannot be changed here, and a re-send goes to the " +
				"same one: if it is wrong, reach the borrower in another way."
		} else {
			next += "A re-send goes to the same address."
		}
		return ui.Diagnosis{
			Tone: ui.Bad, Title: "The mail server refused it for good", Text: lastWord(last), Next: next,
		}
	}
	return ui.Diagnosis{
		Tone: ui.Bad, Title: "It was not sent", Text: ui.Sentence(detail.Reason),
		Next: "See that the mail server works again, then re-send it.",
	}
}

func queuedExplanation(wait email.Wait, last email.Attempt) ui.Diagnosis {
	switch {
	case wait == email.WaitServer:
		title := "It waits: the mail server refuses us, whatever the recipient"
		said := "The server refused other e-mails in the same way."
		if last.Number > 0 {
			said = lastWord(last)
		}
		switch {
		case last.RefusesSize():
			title = "It waits: the mail server finds it too big"
		case last.Stage == email.StageRecipient:
			title = "It waits: the mail server refuses us, or this recipient"
		}
		return ui.Diagnosis{
			Tone: ui.Warn, Title: title,
			Text: said, Next: "Tell the person who runs Drawbridge. It is sent by itself once the mail " +
				"server takes e-mails again, and has used up no try.",
		}
	case wait == email.WaitWelcome:
		return ui.Diagnosis{
			Tone: ui.Calm, Title: "It waits for the welcome e-mail",
			Text: "The other e-mails about an application are sent once its welcome e-mail has ended.",
		}
	case last.Number == 0:
		return ui.Diagnosis{
			Tone: ui.Calm, Title: "It waits to be sent",
			Text: "The first attempt is made as soon as a worker is free.",
		}
	case last.Outcome == "":
		return ui.Diagnosis{
			Tone: ui.Calm, Title: "It is being sent", Text: "Reload the page for the result.",
		}
	}
	return ui.Diagnosis{
		Tone: ui.Warn, Title: "It was not accepted yet and is tried again by itself",
		Text: lastWord(last), Next: "Wait, unless every e-mail waits: then look at the mail server.",
	}
}

// lastWord is the server's reply, or the error if there was none.
func lastWord(last email.Attempt) string {
	if last.ReplyCode == 0 {
		return ui.Sentence(last.Error)
	}
	return ui.Sentence(fmt.Sprintf("attempt %d was answered: %d %s",
		last.Number, last.ReplyCode, last.Reply))
}
