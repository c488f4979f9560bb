package console

import (
	"drawbridge/internal/application"
	"drawbridge/views/ui"
)

func partnerOptions(owners []application.Owner) []ui.Option {
	options := []ui.Option{{Label: "All partners"}}
	for _, owner := range owners {
		option := ui.Option{Value: owner.PartnerUID.String(), Label: owner.PartnerName}
		if options[len(options)-1].Value != option.Value {
			options = append(options, option)
		}
	}
	return options
}

func merchantOptions(owners []application.Owner) []ui.Option {
	options := []ui.Option{{Label: "All merchants"}}
	for _, owner := range owners {
		options = append(options, ui.Option{
			Value: owner.MerchantUID.String(), Label: owner.MerchantName + ", " + owner.PartnerName,
		})
	}
	return options
}
