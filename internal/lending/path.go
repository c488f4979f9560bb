package lending

import (
	"strconv"
	"strings"
)

// How much of the names of wrong members an answer repeats: 1 MiB hold thousands.
const (
	maxPathName = 80
	maxPath     = 400
)

// saysUnstorable is what is said of a text that is not Storable.
const saysUnstorable = "must be UTF-8 text without NUL characters or unpaired surrogates"

// Storable tells whether a text can be stored: it has no NUL, for which stands what else cannot.
func Storable(text string) bool { return !strings.ContainsRune(text, 0) }

// Unstorable notes that the text at a path is not Storable.
func (f *FieldErrors) Unstorable(path string) { f.Add(path, "%q %s", path, saysUnstorable) }

// MemberPath names a member of the JSON object at a path, which is empty for the whole. A long
// name is cut, and one with a dot quoted, so that it is not taken for a member of a member.
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
	return below(path, "."+name)
}

// EntryPath names an entry of the JSON array at a path.
func EntryPath(path string, index int) string { return below(path, "["+strconv.Itoa(index)+"]") }

// below is a path one step further; one that is long enough stays as it is, since
// a body may nest ten thousand levels.
func below(path, step string) string {
	if len(path) > maxPath {
		return path
	}
	return path + step
}
