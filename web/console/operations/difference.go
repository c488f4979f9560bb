package operations

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"drawbridge/views/operations"
)

const (
	// hiddenValue replaces a value that must not be shown, should one ever be recorded.
	hiddenValue = "[hidden]"
	// maxDepth is how many levels of a state become fields; deeper levels are shown as JSON.
	maxDepth = 6
	// wholeState is the field name of a state that is not an object.
	wholeState = "state"
)

// secretFields are fields that no state should contain and no page shows.
var secretFields = map[string]bool{
	"secret": true, "client_secret": true, "password": true, "token": true,
	"authorization": true, "recovery_codes": true,
}

// stateDifferences compares two states of the audit log field by field, with the changed
// fields first, then by name.
func stateDifferences(before, after []byte) []operations.Difference {
	was, is := fieldsOf(before), fieldsOf(after)
	names := slices.AppendSeq(slices.Collect(maps.Keys(was)), maps.Keys(is))
	slices.Sort(names)
	var changed, same []operations.Difference
	for _, name := range slices.Compact(names) {
		difference := operations.Difference{Field: name}
		difference.Before, difference.HasBefore = was[name]
		difference.After, difference.HasAfter = is[name]
		if difference.Changed() {
			changed = append(changed, difference)
		} else {
			same = append(same, difference)
		}
	}
	return append(changed, same...)
}

// fieldsOf flattens a state into its fields; nested fields get dotted names.
func fieldsOf(state []byte) map[string]string {
	fields := map[string]string{}
	if len(state) == 0 {
		return fields
	}
	decoder := json.NewDecoder(bytes.NewReader(state))
	decoder.UseNumber() // large numbers stay exact
	var value any
	if err := decoder.Decode(&value); err != nil {
		fields[wholeState] = string(state)
		return fields
	}
	spread(fields, "", value, 0)
	return fields
}

func spread(fields map[string]string, name string, value any, depth int) {
	object, nested := value.(map[string]any)
	if !nested || depth == maxDepth || len(object) == 0 {
		if name == "" {
			name = wholeState
		}
		fields[name] = fieldText(name, value)
		return
	}
	for key, inner := range object {
		path := key
		if name != "" {
			path = name + "." + key
		}
		spread(fields, path, inner, depth+1)
	}
}

// fieldText formats a value for readers: text without quotes, anything else as JSON.
func fieldText(name string, value any) string {
	hidden := secretFields[name[strings.LastIndex(name, ".")+1:]]
	switch value := value.(type) {
	case nil:
		return "none"
	case bool:
		return strconv.FormatBool(value)
	case string:
		if !hidden || value == "" {
			return value
		}
	}
	if hidden {
		return hiddenValue
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "" // a decoded value can be encoded
	}
	return string(text)
}

// maskedState formats a state for one cell of a file.
func maskedState(state []byte) string {
	if len(state) == 0 {
		return ""
	}
	text, err := json.Marshal(fieldsOf(state))
	if err != nil {
		return "" // strings can be encoded
	}
	return string(text)
}
