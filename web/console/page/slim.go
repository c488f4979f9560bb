package page

import (
	"bytes"
	"slices"
)

// impliedEnds are end tags that HTML lets one leave out where the templates have them:
// the next element of the kind, or the end of what holds them, ends these elements, too.
var impliedEnds = [][]byte{
	[]byte("</td>"), []byte("</tr>"), []byte("</th>"), []byte("</li>"), []byte("</option>"),
	[]byte("</dt>"), []byte("</dd>"),
}

// unspaced are tags behind which blanks mean nothing.
var unspaced = [][]byte{
	[]byte("<tr"), []byte("<th"), []byte("<td"), []byte("</tr"), []byte("</th"), []byte("</td"),
	[]byte("</option"),
}

// slim leaves out of a page what means nothing: the quotes around plain values of
// attributes, end tags that are implied, and blanks around the cells of tables. In a list of
// fifty rows that is a tenth.
//
// It takes what templates write: text and values are escaped, so that a bracket or a
// quote in them is none.
func slim(html []byte) []byte {
	slimmed := make([]byte, 0, len(html))
	for len(html) > 0 {
		start := bytes.IndexByte(html, '<')
		if start < 0 {
			break
		}
		slimmed, html = append(slimmed, html[:start]...), html[start:]
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
			slimmed = appendTag(slimmed, tag)
		}
		html = html[end:]
		if slices.ContainsFunc(unspaced, func(of []byte) bool { return bytes.HasPrefix(tag, of) }) {
			html = bytes.TrimLeft(html, " \t\r\n")
		}
	}
	return append(slimmed, html...)
}

// appendTag writes a tag without the quotes that it does not need.
func appendTag(slimmed, tag []byte) []byte {
	for {
		start := bytes.Index(tag, []byte(`="`))
		if start < 0 {
			return append(slimmed, tag...)
		}
		start += len(`="`)
		length := bytes.IndexByte(tag[start:], '"')
		if length < 0 {
			return append(slimmed, tag...)
		}
		value, rest := tag[start:start+length], tag[start+length+1:]
		// A slash after it would become its end.
		plain := length > 0 && !bytes.HasPrefix(rest, []byte("/"))
		if plain && !bytes.ContainsAny(value, " \t\n\r\f'=<>`") {
			slimmed = append(append(slimmed, tag[:start-1]...), value...)
		} else {
			slimmed = append(slimmed, tag[:start+length+1]...)
		}
		tag = rest
	}
}
