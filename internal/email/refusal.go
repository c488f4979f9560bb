package email

import (
	"errors"
	"strings"
)

// What makes a server unfit for the credentials that are configured.
var (
	errNoStartTLS = errors.New(
		"the mail server offers no STARTTLS, which the credentials need")
	errNoMechanism = errors.New(
		"the mail server offers none of SCRAM-SHA-256, PLAIN, LOGIN and CRAM-MD5")
)

// refusesUs tells whether an attempt ended by what the server has against this
// installation, whatever the recipient: its address, its credentials, its sender.
// Only an answer to RCPT can be about the recipient, and not where its class is
// "security or policy" (RFC 3463 section 3.8) or it asks for a sign-in.
func (r Receipt) refusesUs(err error) bool {
	switch r.Stage {
	case StageConnect, StageTLS, StageGreeting, StageAuth, StageSender:
		return r.Code/100 == 5 || errors.Is(err, errNoStartTLS) || errors.Is(err, errNoMechanism)
	case StageRecipient:
		return r.Code == 530 || r.Code/100 == 5 && strings.HasPrefix(r.Reply, "5.7.")
	case StageData, StageHandOver:
	}
	return false
}
