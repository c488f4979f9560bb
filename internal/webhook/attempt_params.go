package webhook

import (
	"encoding/json"
	"fmt"
	"time"
)

// attemptParams is an attempt as statement parameters; what is absent is NULL.
type attemptParams struct {
	status                          *int
	class, errorText, note, address *string
	dns, connect, tls, firstByte    *int64
	total                           int64
	protocol, tlsVersion            *string
	reused                          *bool
	certificateExpires              *time.Time
	requestHeaders, responseHeaders string
}

func newAttemptParams(attempt Attempt) (attemptParams, error) {
	request, err := headersJSON(attempt.RequestHeaders)
	if err != nil {
		return attemptParams{}, err
	}
	response, err := headersJSON(attempt.ResponseHeaders)
	if err != nil {
		return attemptParams{}, err
	}
	class := string(attempt.Class)
	address := ""
	if attempt.Address.IsValid() {
		address = attempt.Address.String()
	}
	var reused *bool
	if attempt.Sent {
		reused = &attempt.Reused
	}
	return attemptParams{
		status:          orNil(attempt.Status),
		class:           orNil(class),
		errorText:       orNil(attempt.Error),
		note:            orNil(attempt.Note),
		address:         orNil(address),
		dns:             phase(attempt.Timings.DNS),
		connect:         phase(attempt.Timings.Connect),
		tls:             phase(attempt.Timings.TLS),
		firstByte:       phase(attempt.Timings.FirstByte),
		total:           attempt.Timings.Total.Microseconds(),
		requestHeaders:  request,
		responseHeaders: response,

		protocol:           orNil(attempt.Protocol),
		tlsVersion:         orNil(attempt.TLSVersion),
		reused:             reused,
		certificateExpires: orNil(attempt.CertificateExpires),
	}, nil
}

func headersJSON(headers []Header) (string, error) {
	if len(headers) == 0 {
		return "[]", nil
	}
	text, err := json.Marshal(headers)
	if err != nil {
		return "", fmt.Errorf("writing headers: %w", err)
	}
	return string(text), nil
}

func orNil[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

// phase is NULL for a phase that did not take place.
func phase(d time.Duration) *int64 { return orNil(d.Microseconds()) }
