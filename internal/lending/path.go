package lending

import (
	"strconv"
	"strings"
)

// How much of the names of wrong members an answer repeats: a body of 1 MiB can hold thousands.
const (
	maxPathName = 80
	maxPath     = 400
)

// saysUnstorable is the message for a text that is not Storable.
const saysUnstorable = "must be UTF-8 text without NUL characters or unpaired surrogates"

// Storable reports whether text has no NUL, which also stands for what else cannot be stored.
func Storable(text string) bool { return !strings.ContainsRune(text, 0) }

// Unstorable records that the text at a path is not Storable.
func (f *FieldErrors) Unstorable(path string) { f.Add(path, "%q %s", path, saysUnstorable) }

// MemberPath names a member of the JSON object at path, which is empty for the root. A long name
// is cut; one with a dot is quoted, so that it does not look like a nested member.
func MemberPath(path, name string) string {
	dotted := strings.Contains(name, ".")
	if len(name) > maxPathName {
		name = strings.ToValidUTF8(name[:maxPathName], "") + "..."
	}
	name = strings.ReplaceAll(name, "\x00", "\uFFFD")
	if path == "" {
		return name
	}
	if dotted {
		name = strconv.Quote(name)
	}
	return joinPath(path, "."+name)
}

// EntryPath names an entry of the JSON array at a path.
func EntryPath(path string, index int) string { return joinPath(path, "["+strconv.Itoa(index)+"]") }

// joinPath appends a step to a path, or returns a path that is already long unchanged: a body may
// nest ten thousand levels.
func joinPath(path, step string) string {
	if len(path) > maxPath {
		return path
	}
	return path + step
}
