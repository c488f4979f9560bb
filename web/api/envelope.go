package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// timestampLayout is UTC with milliseconds.
const timestampLayout = "2006-01-02T15:04:05.000Z"

// envelope is the form of every answer (specification section 2.1).
type envelope struct {
	Timestamp  string `json:"timestamp"`
	StatusCode int    `json:"statusCode"`
	Result     result `json:"result"`
}

type result struct {
	Data  any        `json:"data"`
	Error *errorBody `json:"error"`
}

// errorBody is the error as partners see it.
type errorBody struct {
	Message string               `json:"message"`
	Code    lending.Code         `json:"code"`
	Details []lending.FieldError `json:"details,omitempty"`
}

// statuses is the one map from error code to HTTP status.
var statuses = map[lending.Code]int{
	lending.CodeUnauthorized:             http.StatusUnauthorized,
	lending.CodeForbidden:                http.StatusForbidden,
	lending.CodeNotFound:                 http.StatusNotFound,
	lending.CodeMethodNotAllowed:         http.StatusMethodNotAllowed,
	lending.CodeValidation:               http.StatusBadRequest,
	lending.CodeUnsupportedMediaType:     http.StatusUnsupportedMediaType,
	lending.CodePayloadTooLarge:          http.StatusRequestEntityTooLarge,
	lending.CodeFileTypeNotAllowed:       http.StatusBadRequest,
	lending.CodeDocumentsRequired:        http.StatusBadRequest,
	lending.CodeDocumentsNotAllowed:      http.StatusBadRequest,
	lending.CodeApplicationNotApproved:   http.StatusBadRequest,
	lending.CodeEarlyCompletionForbidden: http.StatusBadRequest,
	lending.CodeAmountExceedsBalance:     http.StatusBadRequest,
	// The specification's own status for a pending draw (section 7).
	lending.CodeDrawPending:         http.StatusInternalServerError,
	lending.CodeProductNotFound:     http.StatusBadRequest,
	lending.CodeApplicationNotFound: http.StatusBadRequest,
	lending.CodeInvalidState:        http.StatusConflict,
	lending.CodeIdempotencyConflict: http.StatusConflict,
	lending.CodeIdempotencyMismatch: http.StatusUnprocessableEntity,
	lending.CodeCursorExpired:       http.StatusGone,
	lending.CodeRateLimited:         http.StatusTooManyRequests,
	lending.CodeInternal:            http.StatusInternalServerError,
	lending.CodeUnavailable:         http.StatusServiceUnavailable,
}

// Status returns the HTTP status of an error code.
func Status(code lending.Code) int {
	if status, known := statuses[code]; known {
		return status
	}
	return http.StatusInternalServerError
}

// RenderError returns the status and body of the answer to an error. A lending.Error is
// shown as it is; any other is answered as an internal error without its cause.
func RenderError(err error, now time.Time) (int, []byte) {
	refusal, ok := errors.AsType[*lending.Error](err)
	if !ok {
		refusal = lending.NewError(lending.CodeInternal,
			"Internal error; quote the X-Request-Id of this answer to support")
	}
	status := Status(refusal.Code)
	return status, render(now, status, result{Error: &errorBody{
		Message: refusal.Message, Code: refusal.Code, Details: refusal.Details,
	}})
}

// renderData returns the body of a successful answer.
func renderData(now time.Time, status int, data any) []byte {
	return render(now, status, result{Data: data})
}

func render(now time.Time, status int, content result) []byte {
	body, err := json.Marshal(envelope{
		Timestamp:  formatTime(now),
		StatusCode: status,
		Result:     content,
	})
	if err != nil {
		// Only our own wire types get here, and all of them can be encoded.
		panic(err)
	}
	return append(body, '\n')
}

// each returns the bodies of things, an empty list if there are none.
func each[T, B any](things []T, body func(T) B) []B {
	bodies := make([]B, 0, len(things))
	for _, thing := range things {
		bodies = append(bodies, body(thing))
	}
	return bodies
}

func formatTime(t time.Time) string { return t.UTC().Format(timestampLayout) }

// formatOptional formats a time, nil for none.
func formatOptional(t *time.Time) *string { return formatGiven(postgres.OrZero(t)) }

// formatGiven formats a time, nil for the zero time.
func formatGiven(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return new(formatTime(t))
}
