package api

import (
	"io"
	"net/http"
	"sync"
	"time"

	"drawbridge/internal/lending"
)

// The bounds on concurrent uploads and other large bodies. Each holds a temporary file, or
// memory, for as long as its client sends.
const (
	maxUploads       = 256
	uploadsPerClient = 64
	// smallUpload is the largest body that is not counted, such as a draw without documents.
	smallUpload = 64 << 10
	// uploadPause is when a refused client may try again.
	uploadPause = 5 * time.Second
)

// uploads counts the uploads in progress. The zero value is ready for use.
type uploads struct {
	mu      sync.Mutex
	inside  int
	clients map[string]int
}

// upload is one upload in progress; its body is read through it.
type upload struct {
	io.Reader

	of     *uploads
	client string
	// small is how many bytes may still be read before the upload counts.
	small   int64
	counted bool
	// refusal is why no more of the body is read.
	refusal error
}

// begin starts an upload; the caller must call end. A body of unknown length is counted,
// and may be refused, once it exceeds smallUpload. Errors: RATE_LIMITED, UNAVAILABLE.
func (u *uploads) begin(client string, request *http.Request) (*upload, error) {
	begun := &upload{Reader: request.Body, of: u, client: client, small: smallUpload}
	if request.ContentLength <= smallUpload {
		return begun, nil
	}
	err := begun.count()
	return begun, err
}

// Read implements io.Reader.
func (b *upload) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.small -= int64(n); b.small < 0 && !b.counted {
		if b.refusal = b.count(); b.refusal != nil {
			return 0, b.refusal
		}
	}
	return n, err
}

func (b *upload) count() error {
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	var refusal *lending.Error
	seconds := int(uploadPause.Seconds())
	switch {
	case b.of.clients[b.client] >= uploadsPerClient:
		refusal = lending.NewError(lending.CodeRateLimited,
			"too many uploads at once: this client may have %d at a time; try again in %d s",
			uploadsPerClient, seconds)
		refusal.Quota = uploadsPerClient
	case b.of.inside+b.of.clients[b.client] >= maxUploads:
		// A client gets as many places as it leaves free: no few of them have them all.
		refusal = lending.NewError(lending.CodeUnavailable,
			"too many uploads are in progress; try again in %d s, "+
				"with the same Idempotency-Key if you sent one", seconds)
	default:
		if b.of.clients == nil {
			b.of.clients = map[string]int{}
		}
		b.of.inside++
		b.of.clients[b.client]++
		b.counted = true
		return nil
	}
	refusal.RetryAfter = uploadPause
	return refusal
}

// end releases the upload's slot.
func (b *upload) end() {
	if !b.counted {
		return
	}
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	b.of.inside--
	if b.of.clients[b.client]--; b.of.clients[b.client] == 0 {
		delete(b.of.clients, b.client)
	}
}
