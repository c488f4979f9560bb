// Package receiver is a partner's endpoint for development: it responds as configured, checks
// signatures as a partner would, and remembers requests, so that anyone can watch a delivery
// fail and recover. It is not part of a production server.
package receiver

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"drawbridge/internal/secret"
)

// Path is where a development server receives webhooks.
const Path = "/sample-receiver"

const (
	// maxKept bounds the remembered requests.
	maxKept = 50
	// maxSecrets bounds the known secrets.
	maxSecrets = 20
	maxBody    = 1 << 20
	// defaultSlow is just longer than the time that an endpoint has to answer (specification
	// section 6.1).
	defaultSlow = 31 * time.Second
)

// Mode is how the receiver responds.
type Mode string

// The modes.
const (
	// ModeAccept confirms genuine requests, with 204.
	ModeAccept Mode = "accept"
	// ModeFail answers 500.
	ModeFail Mode = "fail"
	// ModeRecover answers 503 to the first two attempts of a delivery and
	// confirms the third.
	ModeRecover Mode = "recover"
	// ModeSlow responds after the deadline.
	ModeSlow Mode = "slow"
	// ModeRedirect answers 307 to another path of the receiver.
	ModeRedirect Mode = "redirect"
)

// Modes lists every mode once.
func Modes() []Mode { return []Mode{ModeAccept, ModeFail, ModeRecover, ModeSlow, ModeRedirect} }

// Receiver is the endpoint. Make one with New.
type Receiver struct {
	// Slow is how long a slow response takes, longer than an endpoint has to answer. It must be set
	// before the first request.
	Slow time.Duration

	now func() time.Time

	mu       sync.Mutex
	settings Settings
	secrets  []secret.String
	received []Received
	count    int
	// wrong is the address of the listener with the wrong certificate.
	wrong string
}

// Received is one received request.
type Received struct {
	// Number counts the requests since the start.
	Number   int
	At       time.Time
	Delivery string
	Event    string
	Attempt  string
	Test     bool
	// Application, Status and Timestamp identify the event (specification section 6.1); they are
	// empty if the body is not that of an event.
	Application, Status, Timestamp string
	// Check says whether the request is genuine, and if not, why.
	Check Check
	// Duplicate says where the same was received before, empty for the first time.
	Duplicate string
	// Answer is the status of the response.
	Answer int
	Body   []byte
}

// New returns a receiver that accepts requests signed with one of the secrets.
func New(now func() time.Time, known ...secret.String) *Receiver {
	return &Receiver{
		now: now, Slow: defaultSlow, secrets: known,
		settings: Settings{Mode: ModeAccept, Verify: true},
	}
}

// Settings configure a receiver.
type Settings struct {
	Mode Mode
	// Verify refuses requests that are not genuine with 401.
	Verify bool
}

// Settings returns the current settings.
func (r *Receiver) Settings() Settings {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.settings
}

// Set changes the settings. For an unknown mode it returns false and changes nothing.
func (r *Receiver) Set(settings Settings) bool {
	if !slices.Contains(Modes(), settings.Mode) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settings = settings
	return true
}

// Learn adds a signing secret or token that genuine requests may use. Beyond maxSecrets, the
// oldest is removed.
func (r *Receiver) Learn(value secret.String) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.secrets, value.Equal) {
		return
	}
	r.secrets = append(r.secrets, value)
	if len(r.secrets) > maxSecrets {
		r.secrets = r.secrets[1:]
	}
}

// Received returns the received requests, newest first.
func (r *Receiver) Received() []Received {
	r.mu.Lock()
	defer r.mu.Unlock()
	newest := slices.Clone(r.received)
	slices.Reverse(newest)
	return newest
}

// Clear forgets the received requests.
func (r *Receiver) Clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.received = nil
}

// WrongAddress returns a URL whose certificate names another host, empty if there is no listener
// for it.
func (r *Receiver) WrongAddress() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wrong
}

// ServeHTTP receives a webhook and responds according to the settings.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, maxBody))
	if err != nil {
		http.Error(w, "the body could not be read", http.StatusBadRequest)
		return
	}
	got, mode := r.take(q.Header, body)
	switch got.Answer {
	case http.StatusTemporaryRedirect:
		w.Header().Set("Location", Path+"?redirected=1")
	case http.StatusUnauthorized:
		http.Error(w, got.Check.Text, http.StatusUnauthorized)
		return
	}
	if mode == ModeSlow { // hold the response back until the sender has given up
		// The read deadline, although the request has been read, would end the connection first. Only
		// the writers of tests have no deadlines.
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		timer := time.NewTimer(r.Slow)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-q.Context().Done():
		}
	}
	w.WriteHeader(got.Answer)
}

// take remembers a request and determines the response.
func (r *Receiver) take(header http.Header, body []byte) (Received, Mode) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	got := Received{
		Number: r.count, At: r.now(), Body: body, Delivery: header.Get("x-drawbridge-delivery"),
		Event: header.Get("x-drawbridge-event"), Attempt: header.Get("x-drawbridge-attempt"),
		Test: header.Get("x-drawbridge-test") == "true", Check: r.check(header, body),
	}
	var payload struct {
		Application string `json:"application_id"`
		Status      string `json:"status"`
		Timestamp   string `json:"timestamp"`
	}
	if json.Unmarshal(body, &payload) == nil { // any other body names no event
		got.Application, got.Status = payload.Application, payload.Status
		got.Timestamp = payload.Timestamp
	}
	got.Duplicate = r.duplicate(got)
	got.Answer = r.answer(got)
	r.received = append(r.received, got)
	if len(r.received) > maxKept {
		r.received = r.received[1:]
	}
	return got, r.settings.Mode
}

// answer returns the status of the response to a request.
func (r *Receiver) answer(got Received) int {
	before := 0 // earlier receipts of the delivery
	for _, former := range r.received {
		if former.Delivery == got.Delivery {
			before++
		}
	}
	switch {
	case r.settings.Mode == ModeFail:
		return http.StatusInternalServerError
	case r.settings.Mode == ModeRedirect:
		return http.StatusTemporaryRedirect
	case r.settings.Mode == ModeRecover && before < 2:
		return http.StatusServiceUnavailable
	case r.settings.Verify && !got.Check.Genuine:
		return http.StatusUnauthorized
	}
	return http.StatusNoContent
}

// ServeWrongCertificate listens on a free port of this machine with a certificate for another
// name, until stop is called. No request of a sender that checks certificates ever reaches the
// handler.
func (r *Receiver) ServeWrongCertificate() (stop func() error, err error) {
	certificate, err := wrongCertificate(r.now())
	if err != nil {
		return nil, err
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12,
	})
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		Handler: r, ReadHeaderTimeout: 10 * time.Second,
		// Each refused handshake would log a line; the sender's log has it.
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	r.mu.Lock()
	r.wrong = "https://" + listener.Addr().String() + Path
	r.mu.Unlock()
	go func() { _ = server.Serve(listener) }() // ends when the server is closed
	return server.Close, nil
}
