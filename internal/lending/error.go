package lending

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Code names a kind of refusal. The list is closed: every code has one HTTP
// status (web/errors.go) and one entry in the partner documentation.
type Code string

// The codes that a partner may receive in result.error.code.
const (
	CodeUnauthorized             Code = "UNAUTHORIZED"
	CodeForbidden                Code = "FORBIDDEN"
	CodeNotFound                 Code = "NOT_FOUND"
	CodeMethodNotAllowed         Code = "METHOD_NOT_ALLOWED"
	CodeValidation               Code = "VALIDATION_ERROR"
	CodeUnsupportedMediaType     Code = "UNSUPPORTED_MEDIA_TYPE"
	CodePayloadTooLarge          Code = "PAYLOAD_TOO_LARGE"
	CodeFileTypeNotAllowed       Code = "FILE_TYPE_NOT_ALLOWED"
	CodeDocumentsRequired        Code = "COMPLETION_DOCUMENTS_REQUIRED"
	CodeDocumentsNotAllowed      Code = "COMPLETION_DOCUMENTS_NOT_ALLOWED"
	CodeApplicationNotApproved   Code = "APPLICATION_NOT_APPROVED"
	CodeEarlyCompletionForbidden Code = "EARLY_COMPLETION_NOT_ALLOWED"
	CodeAmountExceedsBalance     Code = "AMOUNT_EXCEEDS_BALANCE"
	CodeDrawPending              Code = "DRAW_PENDING"
	CodeProductNotFound          Code = "PRODUCT_NOT_FOUND"
	CodeApplicationNotFound      Code = "APPLICATION_NOT_FOUND"
	CodeInvalidState             Code = "INVALID_STATE"
	CodeIdempotencyConflict      Code = "IDEMPOTENCY_CONFLICT"
	CodeIdempotencyMismatch      Code = "IDEMPOTENCY_MISMATCH"
	CodeRateLimited              Code = "RATE_LIMITED"
	CodeCursorExpired            Code = "CURSOR_EXPIRED"
	CodeInternal                 Code = "INTERNAL"
	CodeUnavailable              Code = "UNAVAILABLE"
)

// Codes lists every code once, in the order of the documentation.
func Codes() []Code {
	return []Code{
		CodeUnauthorized, CodeForbidden, CodeNotFound, CodeMethodNotAllowed, CodeValidation,
		CodeUnsupportedMediaType, CodePayloadTooLarge, CodeFileTypeNotAllowed,
		CodeDocumentsRequired, CodeDocumentsNotAllowed, CodeApplicationNotApproved,
		CodeEarlyCompletionForbidden, CodeAmountExceedsBalance, CodeDrawPending,
		CodeProductNotFound, CodeApplicationNotFound, CodeInvalidState,
		CodeIdempotencyConflict, CodeIdempotencyMismatch, CodeRateLimited, CodeCursorExpired,
		CodeInternal, CodeUnavailable,
	}
}

// FieldError is one wrong field of a request.
type FieldError struct {
	// Field is the name as the caller wrote it, nested names joined by dots.
	Field string `json:"field"`
	// Message says what is wrong and what would be right.
	Message string `json:"message"`
}

// Error is a refusal fit for the caller: a code from the closed list and a
// message without internals. Any other error is an internal error.
type Error struct {
	Code    Code
	Message string
	// Details holds every wrong field of a validation error. For other refusals it holds whatever
	// helps the caller, or is nil.
	Details []FieldError
	// RetryAfter is how long to wait before repeating the request, 0 if that is unknown.
	RetryAfter time.Duration
	// Quota is the limit that the caller exceeded, 0 if the refusal is not about a counted limit.
	Quota int

	cause error
	// taken means that the value is valid in itself but belongs to something else.
	taken bool
}

// NewError returns a refusal with a formatted message.
func NewError(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Invalid returns a VALIDATION_ERROR for one field.
func Invalid(field, format string, args ...any) *Error {
	message := fmt.Sprintf(format, args...)
	return &Error{
		Code:    CodeValidation,
		Message: message,
		Details: []FieldError{{Field: field, Message: message}},
	}
}

// Taken is Invalid for a value that is right in itself but belongs to something
// that exists already.
func Taken(field, format string, args ...any) *Error {
	refusal := Invalid(field, format, args...)
	refusal.taken = true
	return refusal
}

// IsTaken reports whether err comes from Taken.
func IsTaken(err error) bool {
	refusal, ok := errors.AsType[*Error](err)
	return ok && refusal.taken
}

// Required is the validation error for an absent field (specification section 7).
func Required(field string) *Error { return Invalid(field, "%q is required", field) }

// FieldErrors collects field errors so that one answer names all of them.
type FieldErrors []FieldError

// Add records one error.
func (f *FieldErrors) Add(field, format string, args ...any) {
	*f = append(*f, FieldError{Field: field, Message: fmt.Sprintf(format, args...)})
}

// Merge adds the details of a validation error; nil adds nothing, and any other
// error counts as one error without a field.
func (f *FieldErrors) Merge(err error) {
	if err == nil {
		return
	}
	if refusal, ok := errors.AsType[*Error](err); ok && len(refusal.Details) > 0 {
		*f = append(*f, refusal.Details...)
		return
	}
	*f = append(*f, FieldError{Message: err.Error()})
}

// MergeOthers adds those errors of err whose fields have no error yet.
func (f *FieldErrors) MergeOthers(err error) {
	var others FieldErrors
	others.Merge(err)
	known := *f
	for _, other := range others {
		if !slices.ContainsFunc(known, func(one FieldError) bool { return one.Field == other.Field }) {
			*f = append(*f, other)
		}
	}
}

// Err returns nil if there are no errors, else a VALIDATION_ERROR with the message of the first
// and the details of all.
func (f FieldErrors) Err() error {
	if len(f) == 0 {
		return nil
	}
	return &Error{Code: CodeValidation, Message: f[0].Message, Details: f}
}

// WithCause attaches the underlying error for the log; callers never see it.
func (e *Error) WithCause(cause error) *Error {
	copied := *e
	copied.cause = cause
	return &copied
}

// Error returns the message, followed by the cause where there is one.
func (e *Error) Error() string {
	if e.cause != nil {
		return e.Message + ": " + e.cause.Error()
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.cause }

// ErrorCode returns the code of the first Error in err's chain, CodeInternal
// for any other error and the empty code for nil.
func ErrorCode(err error) Code {
	if err == nil {
		return ""
	}
	if refusal, ok := errors.AsType[*Error](err); ok {
		return refusal.Code
	}
	return CodeInternal
}

// OneLine is the error's text on one line, every error of a refusal and all that were joined
// included.
func OneLine(err error) string {
	text := err.Error()
	if refusal, ok := errors.AsType[*Error](err); ok && len(refusal.Details) > 1 {
		messages := make([]string, 0, len(refusal.Details))
		for _, problem := range refusal.Details {
			messages = append(messages, problem.Message)
		}
		text = strings.Join(messages, "; ")
	}
	var lines []string
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 0 {
			lines = append(lines, strings.Join(words, " "))
		}
	}
	return strings.Join(lines, "; ")
}
