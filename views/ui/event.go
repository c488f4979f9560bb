package ui

import "drawbridge/internal/lending"

// EventWord is the name of a kind of event with the code beside, for a sentence.
func EventWord(code string) string { return lending.EventKind(code).Named() }

// EventsWord says which kinds of events are chosen.
func EventsWord(codes []string) string {
	if len(codes) == 1 {
		if codes[0] == lending.AllEvents {
			return "All events"
		}
		return lending.EventKind(codes[0]).Title()
	}
	return Plural(len(codes), "event", "events")
}

// EventOption offers a kind of event by its name, with the code beside.
func EventOption(kind lending.EventKind) Option {
	return Option{Value: string(kind), Label: EventWord(string(kind))}
}

// EventOptions offers the kinds of events by their names, with the code beside.
func EventOptions(none string) []Option {
	options := []Option{{Label: none}}
	for _, kind := range lending.AllEventKinds() {
		options = append(options, EventOption(kind))
	}
	return options
}
