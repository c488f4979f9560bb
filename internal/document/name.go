package document

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName is the longest display name in bytes.
const maxName = 255

// cleanName turns the file name of a request into one that is safe to display: no folders of any
// system, no control, line or direction characters (which can make EXE look like PDF), bounded. It
// returns "" when nothing is left. The extension is checked on the result, so that the displayed
// name is the checked one.
func cleanName(name string) string {
	name = strings.ToValidUTF8(name, "\uFFFD")
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) ||
			r == '\uFEFF' {
			return -1
		}
		return r
	}, name)
	name = strings.TrimSpace(name)
	extension := path.Ext(name)
	stem := strings.TrimSuffix(name, extension)
	if len(extension) > maxName/2 {
		return cleanName(stem) // not an accepted extension
	}
	stem = strings.TrimLeftFunc(stem, func(r rune) bool { return r == '.' || unicode.IsSpace(r) })
	if stem == "" {
		if len(extension) <= 1 {
			return ""
		}
		stem = "document"
	}
	if limit := maxName - len(extension); len(stem) > limit {
		for !utf8.RuneStart(stem[limit]) { // cut between two characters
			limit--
		}
		stem = stem[:limit]
	}
	return strings.TrimSpace(stem + extension)
}

// ContentDisposition returns the header value with which a document is downloaded under its display
// name, and never shown in the browser. It is safe for any name: the plain form holds harmless
// ASCII only, the extended form (RFC 6266, RFC 8187) the real name in percent-encoding.
func ContentDisposition(name string) string {
	name = cleanName(name)
	if name == "" {
		name = "document"
	}
	plain := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune(`"\%;`, r) {
			return '_'
		}
		return r
	}, name)
	header := `attachment; filename="` + plain + `"`
	if plain == name {
		return header
	}
	var encoded strings.Builder
	for i := range len(name) {
		c := name[i]
		if c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' ||
			strings.IndexByte("!#$&+-.^_`|~", c) >= 0 { // the characters that RFC 8187 allows
			encoded.WriteByte(c)
			continue
		}
		fmt.Fprintf(&encoded, "%%%02X", c)
	}
	return header + "; filename*=UTF-8''" + encoded.String()
}
