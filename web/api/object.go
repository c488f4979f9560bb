package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"drawbridge/internal/application"
	"drawbridge/internal/email"
	"drawbridge/internal/lending"
)

// uidLength is the length of the one accepted text form of a UUID.
const uidLength = 36

// maxLinked bounds the list of linked applications.
const maxLinked = 100

// The bounds of texts, in characters.
const (
	maxName  = application.MaxName
	maxLine  = application.MaxLine
	maxText  = application.MaxText
	maxEmail = application.MaxEmail
)

// object reads the fields of a JSON object and collects everything that is wrong with them,
// so that one answer names it all. Unknown fields are ignored; null counts as absent.
type object struct {
	raw    map[string]json.RawMessage
	prefix string
	errs   *lending.FieldErrors
	// members are the errors in members of the body, whether or not a handler reads them.
	members lending.FieldErrors
	// entries are the errors within the entries of a batch.
	entries lending.FieldErrors
}

// parseObject parses a JSON object. Its errors never quote the decoder.
func parseObject(raw []byte) (*object, error) {
	body := &object{errs: new(lending.FieldErrors)}
	// Replace invalid UTF-8 by a NUL, which is refused and named as well.
	readable := bytes.ToValidUTF8(raw, []byte(`\u0000`))
	// Not a Decoder, which leaves a closing bracket after the object unread.
	if err := json.Unmarshal(readable, &body.raw); err != nil || body.raw == nil {
		return nil, malformed(raw, err)
	}
	// The decoder silently replaces half a surrogate pair by another character.
	for at := range lending.UnstorableEscapes(readable) {
		copy(readable[at:], `\u0000`)
	}
	m := members{decoder: json.NewDecoder(bytes.NewReader(readable))}
	m.decoder.UseNumber()
	if err := m.value("", 0, &m.errs); err != nil {
		return nil, fmt.Errorf("reading a body once more: %w", err)
	}
	body.members, body.entries = m.errs, m.entries
	if len(body.members)+len(body.entries) == 0 && !utf8.Valid(raw) {
		return nil, malformed(raw, nil)
	}
	return body, nil
}

// err returns everything that is wrong with the object. An error of a member replaces the error
// of the field that was read from it, because that field was read from replacement characters.
func (o *object) err() error {
	for _, problem := range slices.Concat(o.members, o.entries) {
		known := slices.IndexFunc(*o.errs, func(known lending.FieldError) bool {
			return known.Field == problem.Field
		})
		if known < 0 {
			*o.errs = append(*o.errs, problem)
		} else {
			(*o.errs)[known] = problem
		}
	}
	return o.errs.Err()
}

func (o *object) name(field string) string { return o.prefix + field }

// has reports whether the field is present and not null.
func (o *object) has(field string) bool {
	value, present := o.raw[field]
	return present && string(value) != "null"
}

// required reports whether the field is present, and adds an error if it is not.
func (o *object) required(field string) bool {
	if !o.has(field) {
		o.errs.Add(o.name(field), "%q is required", o.name(field))
		return false
	}
	return true
}

// str reads a string and reports whether the field is one.
func (o *object) str(field string) (string, bool) {
	var text string
	if err := json.Unmarshal(o.raw[field], &text); err != nil {
		o.errs.Add(o.name(field), "%q must be a string", o.name(field))
		return "", false
	}
	return text, true
}

// given reads a string and reports whether there is one; a needed one must be present.
func (o *object) given(field string, needed bool) (string, bool) {
	if needed && !o.required(field) || !o.has(field) {
		return "", false
	}
	return o.str(field)
}

// text reads a required line of text.
func (o *object) text(field string, limit int) string { return o.line(field, limit, o.errs.Text) }

// linkless reads a required line of text that mails show and that must contain no link.
func (o *object) linkless(field string, limit int) string {
	return o.line(field, limit, o.errs.Name)
}

func (o *object) line(
	field string, limit int, check func(field, text string, limit int) string,
) string {
	text, ok := o.given(field, true)
	if !ok {
		return ""
	}
	return check(o.name(field), text, limit)
}

// optionalText reads a line of text that may be absent; blank counts as absent.
func (o *object) optionalText(field string, limit int) *string {
	return o.optional(field, limit, o.errs.Text)
}

// optionalLines reads text that may have several lines, or be absent.
func (o *object) optionalLines(field string, limit int) *string {
	return o.optional(field, limit, o.errs.Lines)
}

func (o *object) optional(
	field string, limit int, check func(field, text string, limit int) string,
) *string {
	text, ok := o.given(field, false)
	if !ok || strings.TrimSpace(text) == "" {
		return nil
	}
	text = check(o.name(field), text, limit)
	return &text
}

// email reads a required e-mail address. The service checks it too, but here the error is
// reported together with all others.
func (o *object) email(field string) string {
	before := len(*o.errs)
	address := o.text(field, maxEmail)
	if len(*o.errs) == before {
		o.errs.Merge(email.CheckAddressOf(o.name(field), address))
	}
	return address
}

// money reads a required amount above zero.
func (o *object) money(field string) lending.Money {
	if !o.required(field) {
		return lending.Money{}
	}
	amount, ok := o.amount(field)
	if ok && !amount.IsPositive() {
		o.errs.Add(o.name(field), "%q must be greater than 0", o.name(field))
	}
	return amount
}

// optionalMoney reads an amount that may be absent.
func (o *object) optionalMoney(field string) *lending.Money {
	if !o.has(field) {
		return nil
	}
	amount, ok := o.amount(field)
	if !ok {
		return nil
	}
	return &amount
}

func (o *object) amount(field string) (lending.Money, bool) {
	var text string
	if err := json.Unmarshal(o.raw[field], &text); err != nil {
		o.errs.Add(o.name(field), `%q must be a string such as "1234.50"`, o.name(field))
		return lending.Money{}, false
	}
	before := len(*o.errs)
	amount := o.errs.Money(o.name(field), text)
	return amount, len(*o.errs) == before
}

// number reads a whole number from least to most, zero if it is none.
func (o *object) number(field string, least, most int) int {
	var number int
	err := json.Unmarshal(o.raw[field], &number)
	if err != nil || number < least || number > most {
		o.errs.Add(o.name(field), "%q must be a whole number from %d to %d", o.name(field), least,
			most)
		return 0
	}
	return number
}

// uid reads a required UUID.
func (o *object) uid(field string) uuid.UUID {
	text, ok := o.given(field, true)
	if !ok {
		return uuid.Nil
	}
	return o.parseUID(o.name(field), o.name(field), text)
}

// moment reads a time, the zero time for an optional one that is absent.
func (o *object) moment(field string, needed bool) time.Time {
	text, ok := o.given(field, needed)
	if !ok {
		return time.Time{}
	}
	return readTime(o.errs, o.name(field), text, "")
}

// parseUID parses the UUID of a field; place is its name in errors.
func (o *object) parseUID(field, place, text string) uuid.UUID {
	uid, err := uuid.Parse(text)
	if err != nil || len(text) != uidLength {
		o.errs.Add(field, "%q must be a UUID", place)
		return uuid.Nil
	}
	return uid
}

// optionalUID reads a UUID that may be absent.
func (o *object) optionalUID(field string) *uuid.UUID {
	if !o.has(field) {
		return nil
	}
	return new(o.uid(field))
}

// optionalUIDs reads a list of UUIDs that may be absent; one listed twice counts once.
func (o *object) optionalUIDs(field string) []uuid.UUID {
	if !o.has(field) {
		return nil
	}
	var texts []string
	if err := json.Unmarshal(o.raw[field], &texts); err != nil {
		o.errs.Add(o.name(field), "%q must be an array of UUIDs", o.name(field))
		return nil
	}
	first := make(map[string]int, len(texts)) // the first index of each
	for i, text := range slices.Backward(texts) {
		first[strings.ToLower(text)] = i
	}
	if len(first) > maxLinked {
		o.errs.Add(o.name(field), "%q must have at most %d different entries", o.name(field),
			maxLinked)
		return nil
	}
	uids := make([]uuid.UUID, 0, len(first))
	for i, text := range texts {
		if first[strings.ToLower(text)] != i {
			continue
		}
		uids = append(uids, o.parseUID(o.name(field), fmt.Sprintf("%s[%d]", o.name(field), i), text))
	}
	return uids
}

// child reads a required object; its fields are named with this one's name.
func (o *object) child(field string) *object {
	child := &object{prefix: o.name(field) + ".", errs: o.errs}
	if !o.required(field) {
		return child
	}
	if err := json.Unmarshal(o.raw[field], &child.raw); err != nil {
		o.errs.Add(o.name(field), "%q must be an object", o.name(field))
	}
	return child
}
