package sender

import (
	"maps"
	"slices"
	"strings"
)

// Cause is a code for why an attempt failed, stored with it. No other values exist.
type Cause string

// The causes.
const (
	CauseNoName      Cause = "no_name"
	CauseNoAddress   Cause = "no_address"
	CauseNameServer  Cause = "name_server"
	CauseDNSTime     Cause = "dns_time"
	CauseBlocked     Cause = "blocked"
	CauseURL         Cause = "url"
	CauseRefused     Cause = "refused"
	CauseUnreachable Cause = "unreachable"
	CauseNoConnect   Cause = "no_connect"
	CauseConnectTime Cause = "connect_time"
	CauseExpired     Cause = "expired"
	CauseNotYet      Cause = "not_yet"
	CauseWrongName   Cause = "wrong_name"
	CauseUntrusted   Cause = "untrusted"
	CauseBadCert     Cause = "bad_cert"
	CauseNoTLS       Cause = "no_tls"
	CauseAlert       Cause = "alert"
	CauseHandshake   Cause = "handshake"
	CauseTLSTime     Cause = "tls_time"
	CauseAnswerTime  Cause = "answer_time"
	CauseClosed      Cause = "closed"
	CauseReset       Cause = "reset"
	CauseNotHTTP     Cause = "not_http"
	CauseHeadTooBig  Cause = "head_too_big"
	CauseBadStatus   Cause = "bad_status"
	CauseStopped     Cause = "stopped"
	CauseStatus      Cause = "status"
	// CauseProcessDied: the process died before it could record how the request ended.
	CauseProcessDied Cause = "process_died"
)

// causeTexts begin the error text of an attempt that failed with the cause.
var causeTexts = map[Cause]string{
	CauseNoName:      "the host name does not exist",
	CauseNoAddress:   "the host name has no address",
	CauseNameServer:  "the name servers gave no answer",
	CauseDNSTime:     "time ran out while the name was looked up",
	CauseBlocked:     "the address is refused",
	CauseURL:         "the URL is refused",
	CauseRefused:     "the connection was refused",
	CauseUnreachable: "the address cannot be reached",
	CauseNoConnect:   "no connection could be made",
	CauseConnectTime: "time ran out while connecting",
	CauseExpired:     "the certificate has expired",
	CauseNotYet:      "the certificate is not valid yet",
	CauseWrongName:   "the certificate is for another name",
	CauseUntrusted:   "the certificate is not trusted",
	CauseBadCert:     "the certificate is not acceptable",
	CauseNoTLS:       "the endpoint does not speak TLS",
	CauseAlert:       "the endpoint refused the TLS handshake",
	CauseHandshake:   "the TLS handshake broke off",
	CauseTLSTime:     "time ran out during the TLS handshake",
	CauseAnswerTime:  "time ran out while waiting for the answer",
	CauseClosed:      "the connection was closed before an answer came",
	CauseReset:       "the connection was reset before an answer came",
	CauseNotHTTP:     "the answer is not valid HTTP",
	CauseHeadTooBig:  "the headers of the answer are too large",
	CauseBadStatus:   "the status is not a final one",
	CauseStopped:     "the sender stopped before an answer came",
	CauseStatus:      "the endpoint answered",
	CauseProcessDied: "the process stopped during the attempt; whether the request" +
		" arrived is not known",
}

// Text is the beginning of the error text of an attempt that failed with the cause.
func (c Cause) Text() string { return causeTexts[c] }

// Causes returns every cause, in no order.
func Causes() []Cause { return slices.Collect(maps.Keys(causeTexts)) }

// CauseOf derives the cause from an error text, for attempts of releases that stored no
// code and for tables that only store the text; empty if the text is not known.
func CauseOf(text string) Cause {
	if strings.HasPrefix(text, CauseStatus.Text()) {
		return CauseStatus
	}
	said, _, _ := strings.Cut(text, ": ")
	for cause, known := range causeTexts {
		if known == said {
			return cause
		}
	}
	return ""
}
