package list

import (
	"drawbridge/internal/lending"
	"drawbridge/views/ui"
)

// Any is the option that chooses nothing in particular.
func Any(label string) []ui.Option { return []ui.Option{{Label: label}} }

// EventKinds offers the kinds of events.
func EventKinds() []ui.Option {
	options := []ui.Option{{Label: "All events"}}
	for _, kind := range lending.AllEventKinds() {
		options = append(options, ui.Option{Value: string(kind), Label: string(kind)})
	}
	return options
}
