// Package mail renders e-mails: each kind has a subject and writes a document, which
// becomes the HTML part and the plain-text part at once.
//
// A mail is read in programs that differ more than browsers do. So every
// element carries its style with it, tables make the layout, and the style
// sheet in the head holds only what cannot be inlined: dark colours and narrow
// screens. A program that ignores it shows a complete light mail. Nothing is
// loaded from anywhere: no image, no font, and so no way to tell that a mail
// was opened.
//
// Names and titles come from borrowers and partners. They are escaped by
// templ, set apart from the text around them with <bdi>, so that a name written
// from right to left does not reorder a sentence, and broken where a word is
// wider than the screen.
package mail
