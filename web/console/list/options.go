package list

import (
	"context"

	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/internal/partner"
	"drawbridge/internal/webhook"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/ui"
)

// maxPartners bounds the partners to choose from.
const maxPartners = 500

// Options are what a filter offers that depends on what there is.
type Options = func(ctx context.Context) ([]ui.Option, error)

// Partners offers all partners, the first option being for none of them.
func Partners(service *partner.Service, none string) Options {
	return func(ctx context.Context) ([]ui.Option, error) {
		partners, _, err := service.ListPartners(ctx, partner.Filter{Limit: maxPartners})
		options := []ui.Option{{Label: none}}
		for _, each := range partners {
			options = append(options, ui.Option{Value: each.UID.String(), Label: each.Name})
		}
		return options, err
	}
}

// PartnersOf offers the partners that have applications.
func PartnersOf(service *application.Service) Options {
	return func(ctx context.Context) ([]ui.Option, error) {
		owners, err := service.Owners(ctx, MaxOptions)
		options := []ui.Option{{Label: "All partners"}}
		for _, owner := range owners {
			option := ui.Option{Value: owner.PartnerUID.String(), Label: owner.PartnerName}
			if options[len(options)-1].Value != option.Value {
				options = append(options, option)
			}
		}
		return options, err
	}
}

// MerchantsOf offers the merchants that have applications.
func MerchantsOf(service *application.Service) Options {
	return func(ctx context.Context) ([]ui.Option, error) {
		owners, err := service.Owners(ctx, MaxOptions)
		options := []ui.Option{{Label: "All merchants"}}
		for _, owner := range owners {
			options = append(options, ui.Option{
				Value: owner.MerchantUID.String(), Label: owner.MerchantName + ", " + owner.PartnerName,
			})
		}
		return options, err
	}
}

// Subscriptions offers all subscriptions, the first option being for none of them.
func Subscriptions(service *webhook.Services, none string) Options {
	return func(ctx context.Context) ([]ui.Option, error) {
		summaries, _, err := service.Subscriptions.Summaries(ctx,
			subscription.SummaryFilter{Limit: MaxOptions})
		options := []ui.Option{{Label: none}}
		for _, summary := range summaries {
			options = append(options, ui.Option{
				Value: summary.UID.String(), Label: summary.PartnerName + ", " + summary.Label(),
			})
		}
		return options, err
	}
}

// EventKinds offers the kinds of events.
func EventKinds() []ui.Option {
	options := []ui.Option{{Label: "All events"}}
	for _, kind := range lending.AllEventKinds() {
		options = append(options, ui.Option{Value: string(kind), Label: string(kind)})
	}
	return options
}
