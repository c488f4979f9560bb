package list

import (
	"drawbridge/internal/search"
	"drawbridge/views/ui"
)

// The filters by what many lists are about.
var (
	Partner = Filter{
		Name: "partner", Label: "Partner", Kind: Choice,
		Pick: search.Partner, Options: Any("All partners"),
	}
	Merchant = Filter{
		Name: "merchant", Label: "Merchant", Kind: Choice,
		Pick: search.Merchant, Options: Any("All merchants"),
	}
	Product = Filter{
		Name: "product", Label: "Product", Kind: Choice,
		Pick: search.Product, Options: Any("All products"),
	}
)

// Options offers values under a first option for any, each by its word; nil for as it is.
func Options[T ~string](first string, values []T, word func(T) string) []ui.Option {
	options := Any(first)
	for _, value := range values {
		label := string(value)
		if word != nil {
			label = word(value)
		}
		options = append(options, ui.Option{Value: string(value), Label: label})
	}
	return options
}

// Any is the option that chooses nothing in particular.
func Any(label string) []ui.Option { return []ui.Option{{Label: label}} }

// EventKinds offers the kinds of events.
func EventKinds() []ui.Option { return ui.EventOptions("All events") }
