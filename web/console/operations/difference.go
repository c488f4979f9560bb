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
	// hiddenValue stands for what must not be shown, should it ever be written.
	hiddenValue = "[hidden]"
	// maxDepth is how deep a state is taken apart; below, it is shown as JSON.
	maxDepth = 6
	// wholeState names a state that is no object.
	wholeState = "state"
)

// secretFields are what no state should hold and no page shows.
var secretFields = map[string]bool{
	"secret": true, "client_secret": true, "password": true, "token": true,
	"authorization": true, "recovery_codes": true,
}

// stateDifferences puts two states of the audit log side by side, field by
// field: what changed first, each part by name.
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

// fieldsOf takes a state apart into its fields, nested ones by dotted names.
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

// fieldText is a value as people read it: text without quotes, the rest as JSON.
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
		return "" // what was decoded can be written
	}
	return string(text)
}

// maskedState is a state in one cell of a file.
func maskedState(state []byte) string {
	if len(state) == 0 {
		return ""
	}
	text, err := json.Marshal(fieldsOf(state))
	if err != nil {
		return "" // texts can be written
	}
	return string(text)
}
