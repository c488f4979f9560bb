package main

import (
	"io"
	"strings"
)

// style colours what people read on a terminal, and leaves everything else as it is.
type style bool

// styleOf is the style of what is written there. NO_COLOR, set to anything, and a terminal
// that is dumb ask for none.
func (env *environment) styleOf(w io.Writer) style {
	return style(isTerminal(w) && env.getenv("NO_COLOR") == "" && env.getenv("TERM") != "dumb")
}

// The colours of a terminal, as ANSI numbers them.
const (
	bold   = "1"
	faint  = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

// paint writes text in a colour.
func (s style) paint(colour, text string) string {
	if !s || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// head writes the first of some lines bold. It takes them lined up, since cells are measured
// with all that is in them.
func (s style) head(lines string) string {
	first, rest, found := strings.Cut(lines, "\n")
	if !found {
		return lines
	}
	return s.paint(bold, first) + "\n" + rest
}
