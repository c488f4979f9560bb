package api

import (
	"encoding/json"
	"strconv"
	"strings"

	"drawbridge/internal/lending"
)

// How much of wrong members an answer repeats: 1 MiB hold thousands.
const (
	maxMemberErrors = 20
	maxMemberName   = 80
	maxMemberPath   = 400
)

// members walks valid JSON and notes what no operation takes, wherever it stands:
// texts with a NUL, for which what is not UTF-8 stands as well, and names that are given twice in
// one object.
type members struct {
	decoder *json.Decoder
	errs    lending.FieldErrors
	// entries are the errors within the entries of a batch. They count apart, since they hide
	// nothing that refuses the whole.
	entries lending.FieldErrors
}

// value walks a value, an object or array to its end, so many levels below the body.
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
		member := below(path, "["+strconv.Itoa(index)+"]")
		if begun == '{' {
			token, err := m.decoder.Token()
			if err != nil {
				return err
			}
			name, _ := token.(string)
			member = memberPath(path, name)
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
	if strings.ContainsRune(text, 0) && len(*errs) < maxMemberErrors {
		errs.Add(path, "%q must be UTF-8 text without NUL characters or unpaired surrogates", path)
	}
}

// memberPath names a member of the object at a path; a long name is cut.
func memberPath(path, name string) string {
	if len(name) > maxMemberName {
		name = strings.ToValidUTF8(name[:maxMemberName], "") + "..."
	}
	name = strings.ReplaceAll(name, "\x00", "\uFFFD")
	if path == "" {
		return name
	}
	return below(path, "."+name)
}

// below is a path one step further; one that is long enough stays as it is, since
// a body may nest ten thousand levels.
func below(path, step string) string {
	if len(path) > maxMemberPath {
		return path
	}
	return path + step
}
