package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Event is a webhook's body.
type Event struct {
	ApplicationID string `json:"application_id"`
	Status        string `json:"status"`
	// Timestamp is kept as text: with the two fields above it identifies the event.
	Timestamp string          `json:"timestamp"`
	TaskTitle *string         `json:"task_title"`
	Data      json.RawMessage `json:"data"`
}

// Family is the subject of an event, determined from its body alone.
func (e Event) Family() string {
	switch {
	case e.TaskTitle != nil:
		return "task"
	case strings.HasPrefix(e.Status, "DOCUMENT_"):
		return "document"
	case strings.HasPrefix(e.Status, "FUNDING_"):
		return "disbursement"
	case e.Status == "Loan Amount Updated":
		return "amount"
	case e.Status == "Terms Updated":
		return "offer"
	default:
		return "application"
	}
}

// thing is the part of its subject's state that an event reports. An application has three such
// parts: its status, its offer and its documents; an event of one does not outdate one of another.
func (e Event) thing() string {
	family := e.Family()
	if family == "amount" {
		return "offer" // both kinds report the whole offer
	}
	return family
}

// identity identifies an event; a copy of the event has the same identity.
type identity struct{ application, status, timestamp string }

// Receiver takes webhooks, checks that they are genuine and prints each event
// once; it marks events that come late, after a newer one about the same thing of the same
// subject. It keeps up to remembered events in memory: a real receiver keeps them under a
// unique index in its database, and the last sequence with each thing of a subject.
type Receiver struct {
	// Secret is the signing secret; if it is empty, no signature is checked.
	Secret string
	// Standard says to check the signature of Standard Webhooks instead of x-hmac-signature.
	Standard bool
	// Token is the bearer token; if it is empty, no token is checked.
	Token string

	mu       sync.Mutex
	out      io.Writer
	seen     map[identity]bool
	order    []identity
	last     map[string]int64 // the sequence of the newest event of each subject and thing
	subjects []string         // the keys of last, oldest first
}

const (
	// remembered is how many events are remembered to detect duplicates.
	remembered = 100_000
	// maxBody is far above any event's size.
	maxBody = 1 << 20
	// tolerance is how far the time of a signature may differ from ours.
	tolerance = 5 * time.Minute
)

// NewReceiver returns a receiver that prints to out.
func NewReceiver(out io.Writer) *Receiver {
	return &Receiver{out: out, seen: map[identity]bool{}, last: map[string]int64{}}
}

// ServeHTTP answers a delivery: 204 once it is stored, so that it is not sent again; 401 if it
// is forged.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "send webhooks by POST", http.StatusMethodNotAllowed)
		return
	}
	// The signature covers the raw bytes: read them before anything parses them.
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			http.Error(w, "the body is too large", http.StatusRequestEntityTooLarge)
			return
		}
		http.Error(w, "the body ended early", http.StatusBadRequest)
		return
	}
	if !r.genuine(req.Header, body) {
		r.print("refused: the signature or token is missing or wrong")
		http.Error(w, "the signature or token is missing or wrong", http.StatusUnauthorized)
		return
	}
	var event Event
	if err := json.Unmarshal(body, &event); err != nil || event.ApplicationID == "" {
		r.print("refused: not an event: %.100q", body)
		http.Error(w, "the body is not an event", http.StatusBadRequest)
		return
	}
	r.accept(event, req.Header)
	w.WriteHeader(http.StatusNoContent)
}

// genuine checks the agreed authentication.
func (r *Receiver) genuine(header http.Header, body []byte) bool {
	if r.Token != "" {
		want := []byte("Bearer " + r.Token)
		if subtle.ConstantTimeCompare(want, []byte(header.Get("authorization"))) != 1 {
			return false
		}
	}
	switch {
	case r.Secret == "":
		return true
	case r.Standard:
		return signedByStandard(r.Secret, header, body, time.Now())
	}
	return signed(r.Secret, body,
		header.Get("x-hmac-signature"), header.Get("x-hmac-signature-previous"))
}

// signed reports whether one of the signatures is the hex HMAC-SHA256 of body. During a
// rotation the second one is made with the previous secret; whichever secret we have, one of
// the two matches.
func signed(secret string, body []byte, signatures ...string) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	expected := []byte(hex.EncodeToString(mac.Sum(nil)))
	for _, signature := range signatures {
		if hmac.Equal(expected, []byte(signature)) { // in constant time
			return true
		}
	}
	return false
}

// signedByStandard reports whether one of the signatures of Standard Webhooks matches and is
// recent: it covers the id, the time and the body, so that an old delivery cannot be replayed.
func signedByStandard(secret string, header http.Header, body []byte, now time.Time) bool {
	id, at := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > tolerance {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	expected := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	for signature := range strings.FieldsSeq(header.Get("webhook-signature")) {
		if hmac.Equal(expected, []byte(signature)) {
			return true
		}
	}
	return false
}

// accept prints an event, or says that it is a copy.
func (r *Receiver) accept(event Event, header http.Header) {
	kind := header.Get("x-drawbridge-event")
	if kind == "" {
		kind = event.Family()
	}
	note, subject := "", header.Get("x-drawbridge-subject")
	sequence, err := strconv.ParseInt(header.Get("x-drawbridge-sequence"), 10, 64)
	numbered := err == nil && subject != ""
	if numbered {
		note = fmt.Sprintf(" #%d", sequence)
	}
	if header.Get("x-drawbridge-test") == "true" {
		note += " (test)"
	}
	switch {
	case !r.remember(identity{event.ApplicationID, event.Status, event.Timestamp}):
		note += " (duplicate, ignored)"
	case numbered && !r.takeOver(subject+" "+event.thing(), sequence):
		note += " (older, ignored)"
	}
	if event.TaskTitle != nil {
		note = fmt.Sprintf(" %q%s", *event.TaskTitle, note)
	}
	r.print("%s %s %s %q%s", event.Timestamp, kind, event.ApplicationID, event.Status, note)
}

// remember reports whether the event is new, and forgets the oldest beyond the
// bound.
func (r *Receiver) remember(id identity) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[id] {
		return false
	}
	r.seen[id] = true
	r.order = append(r.order, id)
	if len(r.order) > remembered {
		delete(r.seen, r.order[0])
		r.order = r.order[1:]
	}
	return true
}

// takeOver reports whether an event is newer than the last one about the same thing of its
// subject, and forgets the oldest subject beyond the bound.
func (r *Receiver) takeOver(subject string, sequence int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, known := r.last[subject]
	if known && sequence <= last {
		return false
	}
	r.last[subject] = sequence
	if !known {
		r.subjects = append(r.subjects, subject)
	}
	if len(r.subjects) > remembered {
		delete(r.last, r.subjects[0])
		r.subjects = r.subjects[1:]
	}
	return true
}

// print writes one line; deliveries may arrive concurrently.
func (r *Receiver) print(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = fmt.Fprintf(r.out, format+"\n", args...)
}
