package delivery

import (
	"encoding/json"
	"strconv"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/sender"
)

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

// attemptColumns are the parameters of the statement that writes attempts.
func attemptColumns(rows []*madeAttempt) []any {
	// A number or a time and the comma behind it; long texts are counted.
	const typical = 40
	var c [29]arrayLiteral
	for i := range c {
		c[i].text.Grow(typical * len(rows))
	}
	var request, response int
	for _, row := range rows {
		request += len(row.requestHeaders)
		response += len(row.responseHeaders)
	}
	// Each quote in them is escaped.
	c[16].text.Grow(request + request/4)
	c[17].text.Grow(response + response/4)
	for _, row := range rows {
		attempt, timings := row.attempt, row.attempt.Timings
		c[0].addUID(row.task.UID)
		c[1].addTime(row.task.CreatedAt)
		c[2].addInt(int64(row.number))
		c[3].addTime(row.started)
		c[4].addInt(int64(row.task.Version))
		c[5].add(row.task.URL)
		c[6].addIntOrNull(int64(attempt.Status))
		c[7].addOrNull(string(attempt.Class))
		c[8].addOrNull(attempt.Error)
		c[9].addOrNull(attempt.Note)
		if attempt.Address.IsValid() {
			c[10].add(attempt.Address.String())
		} else {
			c[10].null()
		}
		c[11].addIntOrNull(timings.DNS.Microseconds())
		c[12].addIntOrNull(timings.Connect.Microseconds())
		c[13].addIntOrNull(timings.TLS.Microseconds())
		c[14].addIntOrNull(timings.FirstByte.Microseconds())
		c[15].addInt(timings.Total.Microseconds())
		c[16].add(row.requestHeaders)
		c[17].add(row.responseHeaders)
		c[18].addBytes(attempt.ResponseBody)
		c[19].add(string(row.outcome.state))
		c[20].addTimeOrNull(row.outcome.next)
		c[21].addTimeOrNull(row.outcome.finished)
		c[22].addOrNull(attempt.Protocol)
		if attempt.Sent {
			c[23].raw(strconv.FormatBool(attempt.Reused))
		} else {
			c[23].null()
		}
		c[24].addOrNull(attempt.TLSVersion)
		c[25].addTimeOrNull(postgres.OrNull(attempt.CertificateExpires))
		c[26].addInt(row.run.JobID)
		c[27].addInt(int64(row.run.Number))
		c[28].addOrNull(string(attempt.Cause))
	}
	return literals(c[:])
}
