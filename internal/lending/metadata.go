package lending

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxMetadataBytes bounds the metadata of a completion certificate.
const MaxMetadataBytes = 64 << 10

// The bounds within which Postgres' jsonb takes any value: its parser has a small stack for
// nesting, and it stores numbers as numerics, not as text.
const (
	maxMetadataDepth    = 64
	maxMetadataNumber   = 100
	maxMetadataExponent = 300
)

// maxMetadataErrors bounds the errors in one answer.
const maxMetadataErrors = 20

const partMetadata = "metadata"

var saysExtreme = fmt.Sprintf("must be a number of at most %d characters, with an exponent from "+
	"-%[2]d to %[2]d", maxMetadataNumber, maxMetadataExponent)

// Metadata is the JSON object that describes a completion certificate
// (specification section 2.3). Keys beyond the known ones are kept. The zero
// value means that none was given.
type Metadata struct{ raw json.RawMessage }

// metadataTypes holds the known keys by path and the type that each must have.
var metadataTypes = map[string]string{
	"metadata.projectName":                "string",
	"metadata.completionDate":             "date",
	"metadata.certificationNumber":        "string",
	"metadata.inspector":                  "string",
	"metadata.inspectorLicense":           "string",
	"metadata.projectDescription":         "string",
	"metadata.systemDetails":              "object",
	"metadata.systemDetails.capacity":     "string",
	"metadata.systemDetails.panelCount":   "number",
	"metadata.systemDetails.inverterType": "string",
	"metadata.complianceNotes":            "string",
}

// ParseMetadata reads the metadata part. Errors: PAYLOAD_TOO_LARGE above 64 KiB;
// VALIDATION_ERROR naming each wrong key ("metadata.systemDetails.capacity"), including one
// given twice or one that cannot be stored faithfully: an unpaired surrogate, a NUL, an extreme
// number. It names "metadata" itself if that is not a JSON object or nests too deeply.
func ParseMetadata(raw []byte) (Metadata, error) {
	if len(raw) > MaxMetadataBytes {
		return Metadata{}, NewError(CodePayloadTooLarge, "%q must be at most %d bytes",
			partMetadata, MaxMetadataBytes)
	}
	trimmed := bytes.TrimLeft(raw, " \t\r\n")
	if !utf8.Valid(raw) || !bytes.HasPrefix(trimmed, []byte("{")) || !json.Valid(raw) {
		return Metadata{}, Invalid(partMetadata, "%q must be a JSON object", partMetadata)
	}
	// The decoder silently replaces half a surrogate pair, so turn each into a NUL first.
	readable := bytes.Clone(raw)
	for at := range UnstorableEscapes(raw) {
		copy(readable[at:], `\u0000`)
	}
	reader := metadataReader{decoder: json.NewDecoder(bytes.NewReader(readable))}
	reader.decoder.UseNumber()
	if err := reader.value(partMetadata, 0); err != nil {
		return Metadata{}, Invalid(partMetadata, "%q cannot be read: %s", partMetadata, err)
	}
	if err := reader.errs.Err(); err != nil {
		return Metadata{}, err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return Metadata{}, fmt.Errorf("compacting metadata: %w", err)
	}
	return Metadata{raw: compact.Bytes()}, nil
}

// IsZero reports whether no metadata was given; an empty object counts as given.
func (m Metadata) IsZero() bool { return m.raw == nil }

// IsEmpty reports whether there is no content: no metadata, or an empty object.
func (m Metadata) IsEmpty() bool { return m.raw == nil || string(m.raw) == "{}" }

// JSON returns the object without insignificant white space, nil if none was given.
func (m Metadata) JSON() json.RawMessage { return slices.Clone(m.raw) }

// MarshalJSON returns the object, null if none was given.
func (m Metadata) MarshalJSON() ([]byte, error) { return m.raw.MarshalJSON() }

// metadataReader walks the tokens of valid JSON and collects errors.
type metadataReader struct {
	decoder *json.Decoder
	errs    FieldErrors
	// zeros counts the zeros that exponents stand for: jsonb writes them out, fifty times as long.
	zeros int
}

// value reads one value and checks it against the type of its path.
func (r *metadataReader) value(path string, depth int) error {
	token, err := r.decoder.Token()
	if err != nil {
		return err
	}
	r.check(path, token)
	if r.zeros > MaxMetadataBytes {
		return fmt.Errorf("the exponents of its numbers add up to more than %d", MaxMetadataBytes)
	}
	delimiter, nested := token.(json.Delim)
	if !nested {
		return nil
	}
	if depth == maxMetadataDepth {
		return fmt.Errorf("it is nested deeper than %d levels", maxMetadataDepth)
	}
	if delimiter == '{' {
		err = r.members(path, depth)
	}
	for index := 0; err == nil && delimiter == '[' && r.decoder.More(); index++ {
		err = r.value(EntryPath(path, index), depth+1)
	}
	if err != nil {
		return err
	}
	_, err = r.decoder.Token()
	return err
}

func (r *metadataReader) members(path string, depth int) error {
	seen := map[string]bool{}
	for r.decoder.More() {
		token, err := r.decoder.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string)
		member := MemberPath(path, key)
		r.require(Storable(key), member, saysUnstorable)
		if seen[key] {
			r.refuse(member, "must be given once")
		}
		seen[key] = true
		if err := r.value(member, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (r *metadataReader) check(path string, token json.Token) {
	number, isNumber := token.(json.Number)
	text, isText := token.(string)
	switch metadataTypes[path] {
	case "string":
		r.require(isText, path, "must be a string")
	case "date":
		_, err := time.Parse(time.DateOnly, text)
		r.require(err == nil, path, "must be a date as YYYY-MM-DD")
	case "object":
		r.require(token == json.Delim('{'), path, "must be an object")
	case "number":
		r.require(isNumber, path, "must be a number")
	}
	if isText {
		r.require(Storable(text), path, saysUnstorable)
	}
	if isNumber {
		zeros, storable := exponentZeros(number)
		r.zeros += zeros
		r.require(storable, path, saysExtreme)
	}
}

func (r *metadataReader) require(holds bool, path, message string) {
	if !holds {
		r.refuse(path, message)
	}
}

// refuse records an error, up to a bound: 64 KiB can hold thousands of wrong values.
func (r *metadataReader) refuse(path, message string) {
	if len(r.errs) < maxMetadataErrors {
		r.errs.Add(path, "%q %s", path, message)
	}
}

// exponentZeros returns the most zeros that the exponent can stand for, and whether the number can
// be stored.
func exponentZeros(number json.Number) (zeros int, storable bool) {
	_, exponent, hasExponent := strings.Cut(strings.ToLower(number.String()), "e")
	if hasExponent {
		power, err := strconv.Atoi(exponent)
		if err != nil || power > maxMetadataExponent || power < -maxMetadataExponent {
			return 0, false
		}
		zeros = max(power, -power)
	}
	return zeros, len(number) <= maxMetadataNumber
}

// UnstorableEscapes yields the offsets of the \u escapes of valid JSON that a Postgres text
// cannot hold: a NUL, or a surrogate without its other half.
func UnstorableEscapes(raw []byte) iter.Seq[int] {
	return func(yield func(at int) bool) {
		for at := 0; at < len(raw); at++ {
			if raw[at] != '\\' {
				continue
			}
			begun := at
			at++
			if raw[at] != 'u' {
				continue
			}
			unit := hexUnit(raw[at+1:])
			at += 4
			high := unit >= 0xD800 && unit <= 0xDBFF
			switch {
			case high && bytes.HasPrefix(raw[at+1:], []byte(`\u`)) && isLowSurrogate(hexUnit(raw[at+3:])):
				at += 6
			case high || unit == 0 || isLowSurrogate(unit):
				if !yield(begun) {
					return
				}
			}
		}
	}
}

// hexUnit reads the four hexadecimal digits that valid JSON has after \u.
func hexUnit(digits []byte) uint64 {
	unit, _ := strconv.ParseUint(string(digits[:4]), 16, 16)
	return unit
}

func isLowSurrogate(unit uint64) bool { return unit >= 0xDC00 && unit <= 0xDFFF }
