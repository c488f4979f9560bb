package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Client calls the partner API with one set of credentials.
type Client struct {
	// BaseURL is the address before /v2.
	BaseURL string
	ID      string
	Secret  string
	// MerchantUID is sent when it is not empty; group accounts need it.
	MerchantUID string
	// HTTP carries the requests.
	HTTP *http.Client
	// Wait passes time between tries; it ends early with the context.
	Wait func(ctx context.Context, d time.Duration) error
}

// NewClient returns a client that still needs its address and credentials.
func NewClient() *Client {
	return &Client{HTTP: &http.Client{Timeout: 30 * time.Second}, Wait: wait}
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// APIError is a refusal. Decide by Code; show Message to people; quote
// RequestID to the lender.
type APIError struct {
	Status    int
	Code      string
	Message   string
	Details   []FieldError
	RequestID string
	// RetryAfter is how long a 429 asks to wait, zero for nothing said.
	RetryAfter time.Duration
}

// FieldError is one wrong field of a request.
type FieldError struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Error says all that support would ask for.
func (e *APIError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d %s: %s", e.Status, e.Code, e.Message)
	for _, problem := range e.Details {
		text.WriteString("; " + problem.Field + ": " + problem.Message)
	}
	if e.RequestID != "" {
		text.WriteString(" (request " + e.RequestID + ")")
	}
	return text.String()
}

// temporary tells whether the very same request may succeed later. DRAW_PENDING
// is a 500 too, but it ends with an event, not with a moment's patience.
func (e *APIError) temporary() bool {
	switch e.Code {
	case "RATE_LIMITED", "IDEMPOTENCY_CONFLICT", "INTERNAL", "UNAVAILABLE":
		return true
	case "DRAW_PENDING":
		return false
	}
	return e.Status >= http.StatusInternalServerError
}

// request is one call. A body is kept as bytes, so that it can be sent again.
type request struct {
	method, path string
	contentType  string
	body         []byte
	// key is the idempotency key: with it a try can be repeated safely.
	key string
}

// tries bounds how often one call is sent.
const tries = 4

// call sends a request, again if need be, and decodes result.data into data.
func (c *Client) call(ctx context.Context, r request, data any) error {
	// After a lost answer only what has a key, or changes nothing, may be sent again.
	safe := r.key != "" || r.method == http.MethodGet
	for try := 1; ; try++ {
		err := c.once(ctx, r, data)
		if err == nil {
			return nil
		}
		refusal, refused := errors.AsType[*APIError](err)
		if try == tries || !safe || refused && !refusal.temporary() || ctx.Err() != nil {
			return fmt.Errorf("%s %s: %w", r.method, r.path, err)
		}
		// It doubles from half a second, with jitter, unless the server said how long.
		pause := 250 * time.Millisecond << try
		pause += rand.N(pause / 2) //nolint:gosec // jitter, not a secret
		if refused && refusal.RetryAfter > 0 {
			pause = refusal.RetryAfter
		}
		if err := c.Wait(ctx, pause); err != nil {
			return err
		}
	}
}

func (c *Client) once(ctx context.Context, r request, data any) error {
	call, err := http.NewRequestWithContext(ctx, r.method, c.BaseURL+r.path, bytes.NewReader(r.body))
	if err != nil {
		return err
	}
	call.Header.Set("x-service-client-id", c.ID)
	call.Header.Set("x-service-client-secret", c.Secret)
	if c.MerchantUID != "" {
		call.Header.Set("x-service-merchant-uid", c.MerchantUID)
	}
	if r.contentType != "" {
		call.Header.Set("Content-Type", r.contentType)
	}
	if r.key != "" {
		call.Header.Set("Idempotency-Key", r.key)
	}
	answer, err := c.HTTP.Do(call)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 4<<20))
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	return decode(answer, body, data)
}

// decode reads the envelope that every answer has.
func decode(answer *http.Response, body []byte, data any) error {
	var envelope struct {
		Result struct {
			Data  json.RawMessage `json:"data"`
			Error *struct {
				Code    string       `json:"code"`
				Message string       `json:"message"`
				Details []FieldError `json:"details"`
			} `json:"error"`
		} `json:"result"`
	}
	if err := json.Unmarshal(body, &envelope); err != nil {
		// A proxy in between may answer with a page of its own.
		page := strings.Join(strings.Fields(string(body)), " ")
		if len(page) > 120 {
			page = page[:120] + "..."
		}
		return &APIError{
			Status: answer.StatusCode, Code: "NO_ENVELOPE",
			Message: "the answer is not the API's: " + strconv.Quote(page),
		}
	}
	if refusal := envelope.Result.Error; refusal != nil {
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		return &APIError{
			Status: answer.StatusCode, Code: refusal.Code, Message: refusal.Message,
			Details: refusal.Details, RequestID: answer.Header.Get("X-Request-Id"),
			RetryAfter: time.Duration(seconds) * time.Second,
		}
	}
	if err := json.Unmarshal(envelope.Result.Data, data); err != nil {
		return fmt.Errorf("reading result.data: %w", err)
	}
	return nil
}
