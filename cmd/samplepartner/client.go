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
	// BaseURL is the address before /v2, with or without a trailing slash.
	BaseURL string
	ID      string
	Secret  string
	// MerchantUID is sent when it is not empty; group accounts need it.
	MerchantUID string
	// HTTP sends the requests.
	HTTP *http.Client
	// Wait waits between tries; it returns early if the context ends.
	Wait func(ctx context.Context, d time.Duration) error
}

// NewClient returns a client that still needs its address and credentials.
func NewClient() *Client {
	carrier := &http.Client{
		Timeout: 30 * time.Second,
		// The API never redirects. On a redirect Go would send the secret to the other server: it
		// removes only the sensitive headers that it knows.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &Client{HTTP: carrier, Wait: wait}
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
	// RetryAfter is how long the response asks to wait, zero if it does not say.
	RetryAfter time.Duration
}

// FieldError is one wrong field of a request.
type FieldError struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Error includes everything that support would ask for.
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

// temporary reports whether the same request may succeed a moment later. DRAW_PENDING is a 500,
// too, but it ends with an event, not after a short wait.
func (e *APIError) temporary() bool {
	switch e.Code {
	case "RATE_LIMITED", "IDEMPOTENCY_CONFLICT", "INTERNAL", "UNAVAILABLE":
		return true
	case "DRAW_PENDING":
		return false
	}
	return e.Status == http.StatusTooManyRequests || e.Status >= http.StatusInternalServerError
}

// request is one request. The body is kept as bytes, so that it can be sent again.
type request struct {
	method, path string
	contentType  string
	body         []byte
	// key is the idempotency key, with which the request can be repeated safely.
	key string
}

// tries is how often one request is sent at most.
const tries = 4

// call sends a request, repeats it if necessary, and decodes result.data into data.
func (c *Client) call(ctx context.Context, r request, data any) error {
	// After a lost response only requests that have a key or change nothing may be repeated.
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
		// It doubles from half a second, with jitter, unless the server says how long to wait.
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
	call, err := http.NewRequestWithContext(ctx, r.method,
		strings.TrimRight(c.BaseURL, "/")+r.path, bytes.NewReader(r.body))
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

// decode reads the envelope that every response of the API has.
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
	err := json.Unmarshal(body, &envelope)
	seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
	refusal := &APIError{
		Status: answer.StatusCode, RequestID: answer.Header.Get("X-Request-Id"),
		RetryAfter: time.Duration(seconds) * time.Second,
	}
	refused := envelope.Result.Error
	switch {
	case err == nil && refused != nil:
		refusal.Code, refusal.Message, refusal.Details = refused.Code, refused.Message, refused.Details
		return refusal
	case err != nil || answer.StatusCode >= http.StatusMultipleChoices ||
		len(envelope.Result.Data) == 0:
		// A proxy or gateway in between may answer with a page or with other JSON.
		page := strings.Join(strings.Fields(string(body)), " ")
		if len(page) > 120 {
			page = page[:120] + "..."
		}
		refusal.Code, refusal.Message = "NO_ENVELOPE", "the answer is not the API's: "+strconv.Quote(page)
		return refusal
	}
	if err := json.Unmarshal(envelope.Result.Data, data); err != nil {
		return fmt.Errorf("reading result.data: %w", err)
	}
	return nil
}
