// Package mail renders e-mails: each kind has a subject and writes a document, which
// becomes the HTML part and the plain-text part at once.
//
// Mail programs differ more than browsers do. Therefore every element carries its own
// style, the layout uses tables, and the style sheet in the head contains only what cannot
// be inlined: dark colours and narrow screens. A program that ignores it shows a complete
// light mail. Nothing is loaded, no image and no font, so a mail cannot reveal that it was
// opened.
//
// Names and titles come from borrowers and partners. templ escapes them; <bdi> isolates
// them, so that a name written from right to left does not reorder a sentence; and words
// wider than the screen are broken.
package mail
