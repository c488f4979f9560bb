package page

import (
	"bytes"
	"slices"
)

// impliedEnds are end tags that HTML allows one to omit where the templates use them: the
// elements also end at the next element of the kind or at the end of their parent.
var impliedEnds = [][]byte{
	[]byte("</td>"), []byte("</tr>"), []byte("</th>"), []byte("</li>"), []byte("</option>"),
	[]byte("</dt>"), []byte("</dd>"),
}

// unspaced are tags after which whitespace is insignificant.
var unspaced = [][]byte{
	[]byte("<tr"), []byte("<th"), []byte("<td"), []byte("</tr"), []byte("</th"), []byte("</td"),
	[]byte("</option"),
}

// minify removes insignificant bytes from a page: the quotes around plain attribute values,
// implied end tags, and whitespace around table cells. In a list of fifty rows that is a
// tenth of the page.
//
// It relies on the output of templates, in which text and values are escaped, so that they
// contain no literal bracket or quote.
func minify(html []byte) []byte {
	minified := make([]byte, 0, len(html))
	for len(html) > 0 {
		start := bytes.IndexByte(html, '<')
		if start < 0 {
			break
		}
		minified, html = append(minified, html[:start]...), html[start:]
		end, quote := 0, byte(0)
		for ; end < len(html) && (quote != 0 || html[end] != '>'); end++ {
			switch b := html[end]; {
			case b == quote:
				quote = 0
			case quote == 0 && (b == '"' || b == '\''):
				quote = b
			}
		}
		end = min(end+1, len(html))
		tag := html[:end]
		if !slices.ContainsFunc(impliedEnds, func(of []byte) bool { return bytes.Equal(tag, of) }) {
			minified = appendTag(minified, tag)
		}
		html = html[end:]
		if slices.ContainsFunc(unspaced, func(of []byte) bool { return bytes.HasPrefix(tag, of) }) {
			html = bytes.TrimLeft(html, " \t\r\n")
		}
	}
	return append(minified, html...)
}

// appendTag appends a tag without the quotes that it does not need.
func appendTag(minified, tag []byte) []byte {
	for {
		start := bytes.Index(tag, []byte(`="`))
		if start < 0 {
			return append(minified, tag...)
		}
		start += len(`="`)
		length := bytes.IndexByte(tag[start:], '"')
		if length < 0 {
			return append(minified, tag...)
		}
		value, rest := tag[start:start+length], tag[start+length+1:]
		// A slash after an unquoted value would be parsed as the end of the tag.
		plain := length > 0 && !bytes.HasPrefix(rest, []byte("/"))
		if plain && !bytes.ContainsAny(value, " \t\n\r\f'=<>`") {
			minified = append(append(minified, tag[:start-1]...), value...)
		} else {
			minified = append(minified, tag[:start+length+1]...)
		}
		tag = rest
	}
}
