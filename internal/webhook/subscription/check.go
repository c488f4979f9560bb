package subscription

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/webhook/sender"
)

// checkTimeout bounds a check of an endpoint that a person waits for.
const checkTimeout = 5 * time.Second

// CheckDestination resolves the name of an endpoint before it is saved. A name that does
// not resolve yet is a warning; one that resolves to an address that is not allowed is a
// VALIDATION_ERROR of "url". Errors in the URL itself are left to Subscribe and Amend,
// which report them with all others. It waits for DNS, so it belongs outside any
// transaction.
func (s *Service) CheckDestination(ctx context.Context, rawURL string) (warning string, err error) {
	parsed, err := s.Policy.CheckURL(rawURL)
	if err != nil {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return s.Policy.CheckResolved(ctx, nil, parsed)
}

// CheckVersion is CheckDestination for the endpoint of a version that is to be restored.
// Additional error: NOT_FOUND.
func (s *Service) CheckVersion(
	ctx context.Context, uid uuid.UUID, number int,
) (warning string, err error) {
	versions, err := s.Versions(ctx, uid)
	if err != nil {
		return "", err
	}
	version, err := pick(versions, number)
	if err != nil {
		return "", err
	}
	return s.CheckDestination(ctx, version.URL)
}

// CheckVerdict is how one step of a check ended.
type CheckVerdict string

// The verdicts of a check. A refused URL cannot be saved; one with a warning can be, but
// deliveries would fail, or soon will.
const (
	CheckGood    CheckVerdict = "good"
	CheckWarning CheckVerdict = "warning"
	CheckRefused CheckVerdict = "refused"
	// CheckSkipped: an earlier step failed, or the step does not apply.
	CheckSkipped CheckVerdict = "skipped"
)

// CheckStep is the result of one step of a check.
type CheckStep struct {
	// Name is "url", "name", "address", "connection" or "certificate".
	Name    string
	Verdict CheckVerdict
	// Text describes the finding in plain words.
	Text string
}

// URLCheck is the result of CheckURL, step by step in the order in which a delivery would
// take them. All five steps are always present.
type URLCheck struct {
	Steps []CheckStep
	// Verdict is the worst of the steps.
	Verdict CheckVerdict
	// Expires is when the endpoint's certificate expires, zero without one.
	Expires time.Time
}

// The steps of a check.
const (
	stepURL         = "url"
	stepName        = "name"
	stepAddress     = "address"
	stepConnection  = "connection"
	stepCertificate = "certificate"
)

// CheckURL checks an endpoint while its subscription is being edited: the form of the
// URL, whether the name resolves, whether the address is a public one, whether it accepts
// connections, and the certificate and its expiry. It makes no HTTP request, takes 5 s at
// most, and belongs outside any transaction.
func (s *Service) CheckURL(ctx context.Context, rawURL string) URLCheck {
	var check URLCheck
	parsed, err := s.Policy.CheckURL(rawURL)
	if err != nil {
		reason := err.Error()
		if refusal, ok := errors.AsType[*lending.Error](err); ok {
			reason = refusal.Message
		}
		return check.stop(stepURL, CheckRefused, sentenceOf(reason))
	}
	check.add(stepURL, CheckGood, "The URL has an allowed form.")
	probe := s.Sender.Probe(ctx, rawURL, checkTimeout, false)
	switch step := failedStep(probe); step {
	case "":
	case stepAddress:
		check.add(stepName, CheckGood, "The name "+parsed.Hostname()+" resolves.")
		return check.stop(step, CheckRefused, sentenceOf(probe.Error))
	default:
		check.passBefore(step, probe)
		check.Expires = probe.Expires
		return check.stop(step, CheckWarning,
			sentenceOf(probe.Error)+" It can be saved; deliveries fail until this is fixed.")
	}
	check.passBefore(stepCertificate, probe)
	check.Expires = probe.Expires
	if probe.Expires.IsZero() {
		check.add(stepCertificate, CheckSkipped, "Plain http has no certificate.")
		return check
	}
	now := s.DB.Now()
	text := fmt.Sprintf("The certificate is valid until %s, for another %s.",
		probe.Expires.UTC().Format("2006-01-02 15:04 UTC"), sender.Roughly(probe.Expires.Sub(now)))
	if sender.CertificateWarning(probe.Expires, now) != 0 {
		check.add(stepCertificate, CheckWarning, text+" It has to be renewed soon.")
	} else {
		check.add(stepCertificate, CheckGood, text)
	}
	return check
}

// failedStep returns the step at which a probe failed, "" if it did not.
func failedStep(probe sender.Probe) string {
	switch probe.Class {
	case "":
		return ""
	case sender.ClassDNS:
		return stepName
	case sender.ClassBlocked:
		return stepAddress
	case sender.ClassTLS:
		return stepCertificate
	default:
	}
	switch probe.Cause {
	case sender.CauseDNSTime:
		return stepName
	case sender.CauseTLSTime:
		return stepCertificate
	default:
	}
	return stepConnection
}

func (c *URLCheck) add(name string, verdict CheckVerdict, text string) {
	c.Steps = append(c.Steps, CheckStep{Name: name, Verdict: verdict, Text: text})
	ranks := map[CheckVerdict]int{CheckGood: 1, CheckWarning: 2, CheckRefused: 3}
	if ranks[verdict] > ranks[c.Verdict] {
		c.Verdict = verdict
	}
}

// passBefore adds, as good, the steps between the form of the URL and the named one.
func (c *URLCheck) passBefore(step string, probe sender.Probe) {
	for _, passed := range []CheckStep{
		{Name: stepName, Text: "The name resolves."},
		{Name: stepAddress, Text: fmt.Sprintf("%s is an allowed address.", probe.Address.Addr())},
		{Name: stepConnection, Text: fmt.Sprintf("The endpoint accepts connections on port %d.",
			probe.Address.Port())},
	} {
		if passed.Name == step {
			return
		}
		c.add(passed.Name, CheckGood, passed.Text)
	}
}

// stop adds the step that ends the check and marks the rest as skipped.
func (c *URLCheck) stop(step string, verdict CheckVerdict, text string) URLCheck {
	c.add(step, verdict, text)
	after := false
	for _, name := range []string{stepURL, stepName, stepAddress, stepConnection, stepCertificate} {
		if after {
			c.add(name, CheckSkipped, "Not looked at.")
		}
		after = after || name == step
	}
	return *c
}

// sentenceOf turns an error's text into a sentence.
func sentenceOf(text string) string {
	if text == "" {
		return ""
	}
	text = strings.ToUpper(text[:1]) + text[1:]
	if strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}
