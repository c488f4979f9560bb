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
	// Timestamp is kept as text: with the two above it names the event.
	Timestamp string          `json:"timestamp"`
	TaskTitle *string         `json:"task_title"`
	Data      json.RawMessage `json:"data"`
}

// Family tells what an event is about from its body alone.
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

// thing tells what of its subject's state an event tells. An application has three such things:
// its status, its offer and its documents; no event of one makes one of another old.
func (e Event) thing() string {
	family := e.Family()
	if family == "amount" {
		return "offer" // both kinds tell the whole of it
	}
	return family
}

// identity names an event; a copy of it has the same one.
type identity struct{ application, status, timestamp string }

// Receiver takes webhooks, checks that they are genuine and prints each event
// once; of those that come late, after a newer one that tells the same thing of the same
// subject, it says so. What it has seen it keeps in memory, up to remembered events: a real one
// keeps them under a unique index in its database, and the last sequence with each thing of a
// subject.
type Receiver struct {
	// Secret is the signing secret; empty checks no signature.
	Secret string
	// Standard checks the signature of Standard Webhooks in place of x-hmac-signature.
	Standard bool
	// Token is the bearer token; empty checks none.
	Token string

	mu       sync.Mutex
	out      io.Writer
	seen     map[identity]bool
	order    []identity
	last     map[string]int64 // the sequence of the newest event of each subject and thing
	subjects []string         // those of last, oldest first
}

const (
	// remembered bounds the memory of duplicates.
	remembered = 100_000
	// maxBody is far above any event's size.
	maxBody = 1 << 20
	// tolerance is how far the time of a signature may be from ours.
	tolerance = 5 * time.Minute
)

// NewReceiver returns a receiver that prints to out.
func NewReceiver(out io.Writer) *Receiver {
	return &Receiver{out: out, seen: map[identity]bool{}, last: map[string]int64{}}
}

// ServeHTTP answers a delivery: 204 once it is safe with us, so that it is not
// sent again; 401 for a forged one.
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

// genuine checks whatever authentication was agreed.
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

// signed tells whether one of the signatures is the hex HMAC-SHA256 of body.
// The second one is by the secret before a rotation; whichever we hold, one of
// the two fits.
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

// signedByStandard tells whether one of the signatures of Standard Webhooks fits and is
// fresh: it covers the id, the time and the body, so that no old delivery can be played again.
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

// takeOver reports whether an event is newer than the last of its subject that told the same
// thing, and forgets the oldest subject beyond the bound.
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

// print writes one line; deliveries come at the same time.
func (r *Receiver) print(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = fmt.Fprintf(r.out, format+"\n", args...)
}
