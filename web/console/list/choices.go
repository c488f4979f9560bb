package list

import (
	"context"

	"drawbridge/internal/application"
	"drawbridge/views/ui"
)

// Partners are the partners of applications, as the choices of a filter.
func Partners(
	owners func(ctx context.Context, limit int) ([]application.Owner, error),
) func(context.Context) ([]ui.Option, error) {
	return func(ctx context.Context) ([]ui.Option, error) {
		found, err := owners(ctx, MaxOptions)
		options := []ui.Option{{Label: "All partners"}}
		for _, owner := range found {
			option := ui.Option{Value: owner.PartnerUID.String(), Label: owner.PartnerName}
			if options[len(options)-1].Value != option.Value {
				options = append(options, option)
			}
		}
		return options, err
	}
}
