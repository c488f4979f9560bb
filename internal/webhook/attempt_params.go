package webhook

import (
	"encoding/json"
	"fmt"
	"time"
)

// attemptParams is an attempt as statement parameters; what is absent is NULL.
type attemptParams struct {
	status                          *int64
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
		status:          orNil(int64(attempt.Status)),
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

// attemptColumns are the parameters of recordAttempts, a column for each.
type attemptColumns [26]column

// add appends a row.
func (c *attemptColumns) add(row madeAttempt) {
	c[0].addUID(row.task.UID)
	c[1].addTime(row.task.CreatedAt)
	c[2].addInt(int64(row.number))
	c[3].addTime(row.started)
	c[4].addInt(int64(row.task.Version))
	c[5].add(row.task.URL)
	c[6].addIntOrNull(row.params.status)
	c[7].addOrNull(row.params.class)
	c[8].addOrNull(row.params.errorText)
	c[9].addOrNull(row.params.note)
	c[10].addOrNull(row.params.address)
	c[11].addIntOrNull(row.params.dns)
	c[12].addIntOrNull(row.params.connect)
	c[13].addIntOrNull(row.params.tls)
	c[14].addIntOrNull(row.params.firstByte)
	c[15].addInt(row.params.total)
	c[16].add(row.params.requestHeaders)
	c[17].add(row.params.responseHeaders)
	c[18].addBytes(row.attempt.ResponseBody)
	c[19].add(string(row.outcome.state))
	c[20].addTimeOrNull(row.outcome.next)
	c[21].addTimeOrNull(row.outcome.finished)
	c[22].addOrNull(row.params.protocol)
	c[23].addBoolOrNull(row.params.reused)
	c[24].addOrNull(row.params.tlsVersion)
	c[25].addTimeOrNull(row.params.certificateExpires)
}

// args are the parameters in their order.
func (c *attemptColumns) args() []any {
	args := make([]any, len(c))
	for i := range c {
		args[i] = c[i].String()
	}
	return args
}
