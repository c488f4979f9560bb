// Package sheet writes cells of CSV files that people open in spreadsheets.
package sheet

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// plainNumber matches what spreadsheets read as a number, whatever its sign.
var plainNumber = regexp.MustCompile(`^[+-]?\d+(\.\d+)?$`)

// laterFormula matches a formula that follows a semicolon, tab or line break. A spreadsheet that
// separates cells by semicolons or tabs reads the quotes around the cell as text, and a line
// break as the end of the row.
var laterFormula = regexp.MustCompile(
	"([;\\t\\r\\n])([ \\x{00A0}\\x{3000}\\x{FEFF}\\x{200B}\\v\\f\"']*[=+\\-@|%＝＋－＠])")

// Inert keeps a spreadsheet from reading text as a formula: text that begins like one, apart
// from spaces, is prefixed with an apostrophe, as spreadsheets themselves mark text. NUL, which
// ends a file for some, is removed.
func Inert(cell string) string {
	cell = strings.ReplaceAll(strings.ToValidUTF8(cell, "\uFFFD"), "\x00", "")
	cell = laterFormula.ReplaceAllString(cell, "$1'$2")
	start := strings.TrimLeft(cell, " \u00A0\u3000\uFEFF\u200B\n\v\f\"'")
	if start == "" || plainNumber.MatchString(cell) {
		return cell
	}
	first, _ := utf8.DecodeRuneInString(start)
	if strings.ContainsRune("=+-@\t\r|%＝＋－＠", first) {
		return "'" + cell
	}
	return cell
}
