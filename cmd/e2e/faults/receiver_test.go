package faults

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"
)

// receipt is one request that the receiver got.
type receipt struct {
	number int
	// status is the status of the response, 0 if the connection was dropped instead.
	status int
	body   []byte
}

// recordingReceiver is a partner's endpoint that fails at random and remembers
// every request.
type recordingReceiver struct {
	url string
	mu  sync.Mutex
	// chance is the source of the failures.
	chance *rand.Rand
	// healthy turns the failures off; delay is then how long each answer takes.
	healthy bool
	delay   time.Duration
	// held, unless nil, keeps every response back until it is closed; waiting is how many
	// requests wait for that.
	held    chan struct{}
	waiting int
	got     map[string][]receipt
	open    map[string]int
	// overlaps counts requests that came while another request of the same delivery was
	// being answered.
	overlaps int
}

func newRecordingReceiver(t *testing.T, seed uint64) *recordingReceiver {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return newReceiverOn(t, listener, "http", seed)
}

// newReceiverOn is a receiver on a listener, with plain HTTP or with TLS.
func newReceiverOn(
	t *testing.T, listener net.Listener, scheme string, seed uint64,
) *recordingReceiver {
	t.Helper()
	r := &recordingReceiver{
		url:    scheme + "://" + listener.Addr().String() + "/hook",
		chance: rand.New(rand.NewPCG(seed, seed)),
		got:    map[string][]receipt{}, open: map[string]int{},
	}
	server := &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	t.Cleanup(func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }()
	return r
}

// ServeHTTP answers as planned.
func (r *recordingReceiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	uid := request.Header.Get("x-drawbridge-delivery")
	number, _ := strconv.Atoi(request.Header.Get("x-drawbridge-attempt"))
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the sender died in the middle and got no response
	}
	delay, status := r.plan(uid, number, body)
	defer r.leave(uid)
	r.wait(request.Context())
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-request.Context().Done(): // the sender is gone
		}
	}
	if status == 0 {
		panic(http.ErrAbortHandler) // drops the connection
	}
	w.WriteHeader(status)
}

// plan notes the request and chooses its response at random.
func (r *recordingReceiver) plan(uid string, number int, body []byte) (time.Duration, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delay, status := r.delay, http.StatusNoContent
	if !r.healthy {
		switch at := r.chance.Float64(); {
		case at < 0.10:
			status = http.StatusInternalServerError
		case at < 0.15:
			status = 0
		case at < 0.35:
			delay = time.Duration(50+r.chance.IntN(250)) * time.Millisecond
		}
	}
	r.open[uid]++
	if r.open[uid] > 1 {
		r.overlaps++
	}
	r.got[uid] = append(r.got[uid], receipt{number, status, body})
	return delay, status
}

func (r *recordingReceiver) leave(uid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[uid]--
}

// linger makes every further response a success that takes delay.
func (r *recordingReceiver) linger(delay time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.healthy, r.delay = true, delay
}

// hold keeps all responses back, all successes, until release is called.
func (r *recordingReceiver) hold() (release func()) {
	r.linger(0)
	held := make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = held
	return sync.OnceFunc(func() { close(held) })
}

// wait waits until responses are not held back, or the sender is gone.
func (r *recordingReceiver) wait(sender context.Context) {
	r.mu.Lock()
	held := r.held
	if held == nil {
		r.mu.Unlock()
		return
	}
	r.waiting++
	r.mu.Unlock()
	select {
	case <-held:
	case <-sender.Done():
	}
	r.mu.Lock()
	r.waiting--
	r.mu.Unlock()
}

// holds reports whether requests wait for their responses to be released.
func (r *recordingReceiver) holds() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiting > 0
}

// deliveries is how many different deliveries have come.
func (r *recordingReceiver) deliveries() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.got)
}

// of returns the requests of a delivery.
func (r *recordingReceiver) of(uid string) []receipt {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got[uid]
}

// sameBytes reports whether all requests had the body of the event.
func sameBytes(receipts []receipt, body []byte) bool {
	for _, one := range receipts {
		if !bytes.Equal(one.body, body) {
			return false
		}
	}
	return true
}
