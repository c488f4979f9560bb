// Package sheet writes cells of CSV files that people open in spreadsheets.
package sheet

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// plainNumber is what spreadsheets take for a number, whatever its sign.
var plainNumber = regexp.MustCompile(`^[+-]?\d+(\.\d+)?$`)

// laterFormula is what begins like a formula behind what ends a cell for a
// spreadsheet that parts cells by semicolons or tabs: it takes the quotes around
// the cell for text then, and a line break for the end of the row.
var laterFormula = regexp.MustCompile(
	"([;\\t\\r\\n])([ \\x{00A0}\\x{3000}\\x{FEFF}\\x{200B}\\v\\f\"']*[=+\\-@|%＝＋－＠])")

// Inert keeps a spreadsheet from taking text for a formula: what begins like
// one, spaces left aside, gets an apostrophe before it, as spreadsheets
// themselves write text. NUL, which ends a file for some, is left out.
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
