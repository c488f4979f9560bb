package email

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"os"
	"slices"
	"strings"
	"syscall"
)

// Outcome is how an attempt ended.
type Outcome string

// The outcomes of an attempt.
const (
	// OutcomeSent: the server answered 2xx and is now responsible for the mail.
	OutcomeSent Outcome = "sent"
	// OutcomeTemporary: 4xx, or a network error.
	OutcomeTemporary Outcome = "temporary"
	// OutcomePermanent: the server refused this mail with 5xx.
	OutcomePermanent Outcome = "permanent"
	// OutcomeRefused: the server refused this installation, whatever the recipient.
	OutcomeRefused Outcome = "refused"
	// OutcomeInterrupted: this process stopped before the message's closing dot.
	OutcomeInterrupted Outcome = "interrupted"
	// OutcomeUnknown: the whole message was sent, and no answer is known.
	OutcomeUnknown Outcome = "unknown"
)

// Outcomes lists every outcome of an attempt.
func Outcomes() []Outcome {
	return []Outcome{
		OutcomeSent, OutcomeTemporary, OutcomePermanent, OutcomeRefused, OutcomeInterrupted,
		OutcomeUnknown,
	}
}

// Stage is how far an attempt got.
type Stage string

// The stages of an attempt, in order.
const (
	StageConnect   Stage = "connect"
	StageTLS       Stage = "tls"
	StageGreeting  Stage = "greeting"
	StageAuth      Stage = "auth"
	StageSender    Stage = "sender"    // MAIL FROM
	StageRecipient Stage = "recipient" // RCPT TO
	StageData      Stage = "data"      // DATA and the message without its dot
	StageHandOver  Stage = "hand_over" // the dot and the answer to it
)

// Receipt is the result of an attempt.
type Receipt struct {
	Outcome Outcome
	// Stage is where it ended.
	Stage Stage
	// Code and Reply are the server's last reply, 0 and empty where it gave none.
	Code  int
	Reply string
	// Error describes a failure that was not a reply of the server.
	Error string
	// Server is the host:port that was dialled.
	Server string
	// TLS is the protocol version, such as "TLS 1.3"; empty without encryption.
	TLS string
	// reusable reports whether the connection may carry another mail.
	reusable bool
}

// maxReply bounds how much of a reply is kept, in bytes.
const maxReply = 1000

// errSilent means that the server did not answer in time.
var errSilent = errors.New("the mail server did not answer in time")

// ended sets how stage ended with err.
func (r Receipt) ended(stage Stage, err error) Receipt {
	r.Stage = stage
	r.Outcome = OutcomeTemporary
	answer, ok := errors.AsType[*textproto.Error](err)
	switch {
	case ok:
		r.Code, r.Reply = answer.Code, clip(answer.Msg)
		if answer.Code/100 == 5 {
			r.Outcome = OutcomePermanent
		}
		// 421 announces that the server closes the connection.
		opening := []Stage{StageConnect, StageTLS, StageGreeting, StageAuth}
		r.reusable = !slices.Contains(opening, stage) && answer.Code >= 400 && answer.Code != 421
	case errors.Is(err, context.Canceled):
		r.Error, r.Outcome = explain(err), OutcomeInterrupted
	default:
		r.Error = explain(err)
	}
	if r.refusesUs(err) {
		r.Outcome = OutcomeRefused
	}
	return r
}

// cut sets that the server stopped reading before the message ended.
func (r Receipt) cut(err error) Receipt {
	r = r.ended(StageData, err)
	r.reusable = false // half a message has been sent
	return r
}

// Summary is one line for support staff: the server's reply, or what went wrong.
func (r Receipt) Summary() string {
	if r.Code != 0 {
		return fmt.Sprintf("%d %s", r.Code, r.Reply)
	}
	return r.Error
}

// explain puts the usual network errors into plain words.
func explain(err error) string {
	switch {
	case errors.Is(err, errSilent), errors.Is(err, os.ErrDeadlineExceeded):
		return errSilent.Error()
	case errors.Is(err, context.Canceled):
		return "the worker was stopped"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the mail server closed the connection"
	}
	if failed, ok := errors.AsType[*stageError](err); ok {
		return clip(failed.cause.Error()) // the stage is shown separately
	}
	return clip(err.Error())
}

// clip makes external text fit for the log: one line, valid, bounded.
func clip(text string) string {
	if len(text) > maxReply {
		text = text[:maxReply]
	}
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), isSpace), " ")
}
