package ui

import "drawbridge/internal/lending"

// EventWord is the name of a kind of event with its code, for a sentence.
func EventWord(code string) string { return lending.EventKind(code).Named() }

// EventsWord names the selected kinds of events.
func EventsWord(codes []string) string {
	if len(codes) == 1 {
		if codes[0] == lending.AllEvents {
			return "All events"
		}
		return lending.EventKind(codes[0]).Title()
	}
	return Plural(len(codes), "event", "events")
}

// EventOption is the option of a kind of event: its name with its code.
func EventOption(kind lending.EventKind) Option {
	return Option{Value: string(kind), Label: EventWord(string(kind))}
}

// EventOptions are the options of all kinds of events, after one for none.
func EventOptions(none string) []Option {
	options := []Option{{Label: none}}
	for _, kind := range lending.AllEventKinds() {
		options = append(options, EventOption(kind))
	}
	return options
}
