package delivery

import (
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/sender"
)

// arrayLiteral is an array parameter with a value for each row of a statement, in the
// text form of PostgreSQL. It is for types whose text needs no other encoding.
type arrayLiteral struct{ text strings.Builder }

// arrayEscapes escapes the characters that are special within quotes.
var arrayEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// String returns the array.
func (c *arrayLiteral) String() string {
	if c.text.Len() == 0 {
		return "{}"
	}
	return c.text.String() + "}"
}

func (c *arrayLiteral) next() {
	if c.text.Len() == 0 {
		c.text.WriteByte('{')
	} else {
		c.text.WriteByte(',')
	}
}

func (c *arrayLiteral) null() {
	c.next()
	c.text.WriteString("NULL")
}

// raw adds a value that needs no quotes.
func (c *arrayLiteral) raw(value string) {
	c.next()
	c.text.WriteString(value)
}

func (c *arrayLiteral) add(value string) {
	c.next()
	c.text.WriteByte('"')
	_, _ = arrayEscapes.WriteString(&c.text, value) // a Builder never fails
	c.text.WriteByte('"')
}

func (c *arrayLiteral) addUID(value uuid.UUID) { c.raw(value.String()) }

func (c *arrayLiteral) addInt(value int64) { c.raw(strconv.FormatInt(value, 10)) }

// addTime keeps microseconds, the precision of the database.
func (c *arrayLiteral) addTime(value time.Time) {
	c.next()
	c.text.WriteString(value.UTC().Format(`"2006-01-02 15:04:05.999999Z07:00"`))
}

func (c *arrayLiteral) addBytes(value []byte) {
	if value == nil {
		c.null()
		return
	}
	c.next()
	c.text.WriteString(`"\\x`)
	c.text.WriteString(hex.EncodeToString(value))
	c.text.WriteByte('"')
}

func (c *arrayLiteral) addTimeOrNull(value *time.Time) {
	if value == nil {
		c.null()
	} else {
		c.addTime(*value)
	}
}

// addOrNull adds NULL for an empty text.
func (c *arrayLiteral) addOrNull(value string) {
	if value == "" {
		c.null()
	} else {
		c.add(value)
	}
}

// addIntOrNull adds NULL for 0.
func (c *arrayLiteral) addIntOrNull(value int64) {
	if value == 0 {
		c.null()
	} else {
		c.addInt(value)
	}
}

// literals returns the arrays as arguments of a statement.
func literals(columns []arrayLiteral) []any {
	args := make([]any, len(columns))
	for i := range columns {
		args[i] = columns[i].String()
	}
	return args
}

// headersJSON renders headers as a JSON array, as their struct tags define it. It is
// hand-written because nearly all headers need no escapes.
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

func appendJSON(text []byte, value string) []byte {
	for i := range len(value) {
		if c := value[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			escaped, _ := json.Marshal(value) //nolint:errchkjson // no string fails
			return append(text, escaped...)
		}
	}
	return append(append(append(text, '"'), value...), '"')
}

// runColumns returns the parameters of the statements about attempts that are not made yet:
// their deliveries' keys and their runs, then the fields of the note that they have begun.
func runColumns(rows []*madeAttempt) []any {
	var c [7]arrayLiteral
	for _, row := range inOrder(rows) {
		c[0].addUID(row.task.UID)
		c[1].addTime(row.task.CreatedAt)
		c[2].addInt(row.run.JobID)
		c[3].addInt(int64(row.run.Number))
		c[4].addTime(row.run.ClaimedAt)
		c[5].addInt(int64(row.number))
		c[6].addTime(row.started)
	}
	return literals(c[:])
}

// attemptColumns returns the parameters of the statement that writes attempts.
func attemptColumns(rows []*madeAttempt) []any {
	// A number or a time and the comma after it; long texts are measured below.
	const typical = 40
	var c [30]arrayLiteral
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
		c[29].addTime(row.run.ClaimedAt)
	}
	return literals(c[:])
}
