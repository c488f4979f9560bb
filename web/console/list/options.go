package list

import "drawbridge/views/ui"

// Any is the option that chooses nothing in particular.
func Any(label string) []ui.Option { return []ui.Option{{Label: label}} }

// EventKinds offers the kinds of events.
func EventKinds() []ui.Option { return ui.EventOptions("All events") }
