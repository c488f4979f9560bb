// Package views renders the console's pages: a folder per feature, ui for what the
// features share, and paths for their addresses. Features import ui and paths, never
// each other.
//
// Each page and part is a templ component that takes one props struct and only renders: it
// reads no data and makes no decision that callers depend on. Handlers map the domain to
// props. Pages have two components, the whole page and the region that live updates
// replace, which share their code.
//
// All data that a partner, borrower or endpoint controls passes through templ's escaping,
// and through ui.Visible where control characters could mislead the reader. No component
// writes an inline style or script: the console's content security policy forbids both.
package views
