package postgres

import (
	"fmt"
	"strings"
)

// Conditions collects the conditions that the rows of a statement must meet, with the statement's
// arguments. The zero value has none.
type Conditions struct {
	// Args are the arguments so far, in the order of their placeholders.
	Args []any

	terms []string
}

// Add appends a condition, in which each ? stands for the next value.
func (c *Conditions) Add(condition string, values ...any) {
	for _, value := range values {
		condition = strings.Replace(condition, "?", c.Bind(value), 1)
	}
	c.terms = append(c.terms, condition)
}

// Bind adds an argument and returns its placeholder.
func (c *Conditions) Bind(value any) string {
	c.Args = append(c.Args, value)
	return fmt.Sprintf("$%d", len(c.Args))
}

// Where joins the conditions, each in its own brackets; empty without any.
func (c *Conditions) Where() string {
	if len(c.terms) == 0 {
		return ""
	}
	return ` WHERE (` + strings.Join(c.terms, `) AND (`) + `)`
}

// OlderThan keeps the rows after a position in a list that is sorted by the two columns of a
// Cursor, newest first; the zero Cursor keeps all rows.
func (c *Conditions) OlderThan(place Cursor, at, uid string) {
	c.When(!place.IsZero(), `(`+at+`, `+uid+`) < (?, ?)`, place.At, place.UID)
}

// When appends a condition if asked is true.
func (c *Conditions) When(asked bool, condition string, values ...any) {
	if asked {
		c.Add(condition, values...)
	}
}
