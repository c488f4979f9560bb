package diagnose

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
)

// Owner is who most likely has to act on a failed attempt.
type Owner string

// The owners.
const (
	OwnerPartner Owner = "partner"
	OwnerUs      Owner = "us"
	OwnerNetwork Owner = "network"
)

// Diagnosis explains a failed attempt to somebody who does not know HTTP well.
type Diagnosis struct {
	// Summary describes in a sentence what happened.
	Summary string
	Owner   Owner
	// Next says what to do about it.
	Next string
}

// Attempt explains an attempt from its log record. The Diagnosis of a delivered attempt
// is zero.
func Attempt(a delivery.Attempt) Diagnosis {
	switch a.ErrorClass {
	case "":
		return Diagnosis{}
	case sender.ClassHTTP3xx:
		next := "Ask the partner which URL answers by itself, and put that into the subscription."
		if location := sender.FieldOf(a.ResponseHeaders, "location"); location != "" {
			next = fmt.Sprintf("The endpoint points to %s. If the partner confirms that URL, put it "+
				"into the subscription.", location)
		}
		return Diagnosis{sentence(a.Error + "; redirects are not followed"), OwnerPartner, next}
	case sender.ClassHTTP4xx, sender.ClassHTTP5xx:
		return answered(a)
	default:
	}
	a.Cause = cmp.Or(a.Cause, sender.CauseOf(a.Error))
	text, owner, next := a.Error, cmp.Or(owners[a.Cause], OwnerPartner), adviceByCause[a.Cause]
	switch {
	case next != "" && a.ErrorClass == sender.ClassTimeout:
		text += fmt.Sprintf(" (%s in all: %s)", seconds(a.Duration), phases(a))
	case next == "" && a.ErrorClass == sender.ClassUnknown:
		text = cmp.Or(text, "Our process died during the attempt, and its outcome is not known.")
		owner, next = OwnerUs, adviceStopped
	case next == "":
		text = cmp.Or(text, fmt.Sprintf("The attempt failed with the error class %s.", a.ErrorClass))
		next = checkEndpoint
	}
	return Diagnosis{sentence(text), owner, next}
}

// phases lists the durations of the phases that an attempt went through.
func phases(a delivery.Attempt) string {
	var parts []string
	rest := a.Duration
	for _, phase := range []struct {
		name string
		took time.Duration
	}{{"name lookup", a.DNS}, {"connecting", a.Connect}, {"TLS", a.TLS}} {
		if phase.took > 0 {
			parts = append(parts, phase.name+" "+seconds(phase.took))
			rest -= phase.took
		}
	}
	if a.Cause == sender.CauseAnswerTime {
		parts = append(parts, "waiting for the first byte "+seconds(max(rest, 0)))
	}
	return strings.Join(parts, ", ")
}

// seconds formats a duration for comparison by people.
func seconds(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// sentence capitalises text and ends it with a full stop.
func sentence(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + strings.TrimRight(text[1:], ".") + "."
}

// adviceByCredential is the advice for a status that depends on the credential in the
// request; none if that is a signature, or not known.
func adviceByCredential(a delivery.Attempt) string {
	switch {
	case len(a.RequestHeaders) == 0 || sender.FieldOf(a.RequestHeaders, sender.HeaderSignature) != "":
		return ""
	case slices.ContainsFunc(a.RequestHeaders, func(h sender.Header) bool {
		return sender.IsMasked(h.Value)
	}):
		return adviceByToken[a.HTTPStatus]
	}
	return adviceByNothing[a.HTTPStatus]
}

// answered explains a 4xx or 5xx answer.
func answered(a delivery.Attempt) Diagnosis {
	d := Diagnosis{Summary: sentence(a.Error), Owner: OwnerPartner, Next: checkEndpoint}
	if known := adviceByStatus[a.HTTPStatus]; known != "" {
		d.Next = cmp.Or(adviceByCredential(a), known)
	}
	blocked := a.HTTPStatus == http.StatusForbidden || a.HTTPStatus == http.StatusNotAcceptable ||
		a.HTTPStatus == http.StatusTooManyRequests || a.HTTPStatus == http.StatusServiceUnavailable
	kind := strings.ToLower(sender.FieldOf(a.ResponseHeaders, "content-type"))
	start := strings.ToLower(strings.TrimSpace(string(a.ResponseBody[:min(len(a.ResponseBody), 100)])))
	page := strings.HasPrefix(kind, "text/html") || strings.HasPrefix(start, "<!doctype html") ||
		strings.HasPrefix(start, "<html")
	if blocked && page {
		d.Summary = sentence(a.Error + " with a web page")
		d.Next = "A page for people instead of an answer to a program: probably a firewall or bot " +
			"protection before the endpoint. Ask the partner to let our requests through to it."
	}
	after := sender.FieldOf(a.ResponseHeaders, "retry-after")
	if after != "" && sender.AsksForDelay(a.HTTPStatus) {
		d.Next += " It asked us to wait: retry-after " + after + "."
	}
	return d
}
