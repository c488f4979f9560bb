package delivery

import (
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// arrayLiteral is an array parameter with a value for each row of a statement, in the
// text form of PostgreSQL. It is for types whose text needs no other encoding.
type arrayLiteral struct{ text strings.Builder }

// arrayEscapes are the characters that mean something within quotes.
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

// raw adds what needs no quotes.
func (c *arrayLiteral) raw(value string) {
	c.next()
	c.text.WriteString(value)
}

func (c *arrayLiteral) add(value string) {
	c.next()
	c.text.WriteByte('"')
	_, _ = arrayEscapes.WriteString(&c.text, value) // a Builder takes everything
	c.text.WriteByte('"')
}

func (c *arrayLiteral) addUID(value uuid.UUID) { c.raw(value.String()) }

func (c *arrayLiteral) addInt(value int64) { c.raw(strconv.FormatInt(value, 10)) }

// addTime keeps microseconds, which is what the database does.
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

// literals are the arrays as arguments of a statement.
func literals(columns []arrayLiteral) []any {
	args := make([]any, len(columns))
	for i := range columns {
		args[i] = columns[i].String()
	}
	return args
}
