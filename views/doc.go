// Package views renders the console's pages: a folder per feature, ui for what the
// features share, and paths for their addresses. Features import ui and paths, never
// each other.
//
// Each page and part is a templ component that takes one props struct and only
// renders: it looks nothing up and decides nothing that a caller would want to
// know. Handlers map the domain to props. Components of a page come in two
// sizes, the whole page and the region that live updates replace, and both are
// the same code.
//
// Everything a partner, borrower or endpoint controls passes through templ's
// escaping, and through ui.Visible where control characters could mislead the
// reader. No component emits an inline style or script: the console's content
// security policy forbids both.
package views
