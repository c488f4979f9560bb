package delivery

import (
	"encoding/json"
	"time"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/sender"
)

// attemptParams is an attempt as statement parameters; what is absent is NULL.
type attemptParams struct {
	status                          *int64
	class, cause                    *string
	errorText, note, address        *string
	dns, connect, tls, firstByte    *int64
	total                           int64
	protocol, tlsVersion            *string
	reused                          *bool
	certificateExpires              *time.Time
	requestHeaders, responseHeaders string
}

func newAttemptParams(attempt sender.Attempt) attemptParams {
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
		status:          postgres.OrNull(int64(attempt.Status)),
		class:           postgres.OrNull(class),
		cause:           postgres.OrNull(string(attempt.Cause)),
		errorText:       postgres.OrNull(attempt.Error),
		note:            postgres.OrNull(attempt.Note),
		address:         postgres.OrNull(address),
		dns:             postgres.Micros(attempt.Timings.DNS),
		connect:         postgres.Micros(attempt.Timings.Connect),
		tls:             postgres.Micros(attempt.Timings.TLS),
		firstByte:       postgres.Micros(attempt.Timings.FirstByte),
		total:           attempt.Timings.Total.Microseconds(),
		requestHeaders:  headersJSON(attempt.RequestHeaders),
		responseHeaders: headersJSON(attempt.ResponseHeaders),

		protocol:           postgres.OrNull(attempt.Protocol),
		tlsVersion:         postgres.OrNull(attempt.TLSVersion),
		reused:             reused,
		certificateExpires: postgres.OrNull(attempt.CertificateExpires),
	}
}

// headersJSON is a JSON array of the headers as their struct tags have them. It is
// written by hand for the sake of nearly all headers, which need no escapes.
func headersJSON(headers []sender.Header) string {
	const typical = 64
	text := append(make([]byte, 0, typical*len(headers)+2), '[')
	for i, header := range headers {
		if i > 0 {
			text = append(text, ',')
		}
		text = appendJSON(append(text, `{"name":`...), header.Name)
		text = append(appendJSON(append(text, `,"value":`...), header.Value), '}')
	}
	return string(append(text, ']'))
}

// appendJSON appends a string in JSON.
func appendJSON(text []byte, value string) []byte {
	for i := range len(value) {
		if c := value[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			escaped, _ := json.Marshal(value) //nolint:errchkjson // no string fails
			return append(text, escaped...)
		}
	}
	return append(append(append(text, '"'), value...), '"')
}

// attemptColumns are parameters of the statement that writes attempts, a column for
// each.
type attemptColumns [29]arrayLiteral

func newAttemptColumns(rows []*madeAttempt) *attemptColumns {
	// A number or a time and the comma behind it; long texts are counted.
	const typical = 40
	c := new(attemptColumns)
	for i := range c {
		c[i].text.Grow(typical * len(rows))
	}
	var request, response int
	for _, row := range rows {
		request += len(row.params.requestHeaders)
		response += len(row.params.responseHeaders)
	}
	// Each quote in them is escaped.
	c[16].text.Grow(request + request/4)
	c[17].text.Grow(response + response/4)
	for _, row := range rows {
		c.add(row)
	}
	return c
}

// add appends a row.
func (c *attemptColumns) add(row *madeAttempt) {
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
	c[26].addInt(row.run.JobID)
	c[27].addInt(int64(row.run.Number))
	c[28].addOrNull(row.params.cause)
}

// args are the parameters in their order.
func (c *attemptColumns) args() []any {
	args := make([]any, len(c))
	for i := range c {
		args[i] = c[i].String()
	}
	return args
}
