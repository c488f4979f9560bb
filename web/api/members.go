package api

import (
	"encoding/json"

	"drawbridge/internal/lending"
)

// maxMemberErrors is how many wrong members an answer names; 1 MiB can hold thousands.
const maxMemberErrors = 20

// members walks valid JSON and records what no operation accepts, wherever it stands:
// strings with a NUL (which also stands for invalid UTF-8), and names that are given twice
// in one object.
type members struct {
	decoder *json.Decoder
	errs    lending.FieldErrors
	// entries are the errors within the entries of a batch. They are counted separately, so
	// that they do not hide errors that refuse the whole batch.
	entries lending.FieldErrors
}

// value walks a value, an object or array to its end, at the given depth below the body.
func (m *members) value(path string, depth int, errs *lending.FieldErrors) error {
	token, err := m.decoder.Token()
	if err != nil {
		return err
	}
	if text, ok := token.(string); ok {
		readable(errs, path, text)
	}
	begun, nested := token.(json.Delim)
	if !nested {
		return nil
	}
	within := errs
	if depth == 1 && begun == '[' && path == changesField {
		within = &m.entries
	}
	seen := map[string]bool{}
	for index := 0; m.decoder.More(); index++ {
		member := lending.EntryPath(path, index)
		if begun == '{' {
			token, err := m.decoder.Token()
			if err != nil {
				return err
			}
			name, _ := token.(string)
			member = lending.MemberPath(path, name)
			readable(within, member, name)
			if seen[name] && len(*within) < maxMemberErrors {
				within.Add(member, "%q must be given once", member)
			}
			seen[name] = true
		}
		if err := m.value(member, depth+1, within); err != nil {
			return err
		}
	}
	_, err = m.decoder.Token()
	return err
}

func readable(errs *lending.FieldErrors, path, text string) {
	if !lending.Storable(text) && len(*errs) < maxMemberErrors {
		errs.Unstorable(path)
	}
}
