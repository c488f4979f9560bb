package console

import (
	"context"

	"drawbridge/internal/partner"
	"drawbridge/internal/webhook"
	"drawbridge/views/deliveries"
	"drawbridge/views/ui"
)

// filterChoices are what the lists of the filter form offer, by parameter.
func (c *Console) filterChoices(ctx context.Context) (map[string][]ui.Option, error) {
	subscriptions, err := c.subscriptionOptions(ctx)
	if err != nil {
		return nil, err
	}
	owners, err := c.Applications.Owners(ctx, maxOptions)
	if err != nil {
		return nil, err
	}
	choices := fixedChoices()
	choices["subscription"] = subscriptions
	choices["partner"], choices["merchant"] = partnerOptions(owners), merchantOptions(owners)
	return choices, nil
}

// fixedChoices are the closed lists among the filters.
func fixedChoices() map[string][]ui.Option {
	classes := []ui.Option{{Label: "Any or none"}}
	for _, class := range webhook.ErrorClasses() {
		classes = append(classes, ui.Option{
			Value: string(class), Label: deliveries.ErrorClassWord(string(class)),
		})
	}
	return map[string][]ui.Option{
		"event": eventOptions(), "error": classes,
		"range": {
			{Label: "All time"},
			{Value: "1h", Label: "Last hour"},
			{Value: "today", Label: "Today"},
			{Value: "24h", Label: "Last 24 hours"},
			{Value: "7d", Label: "Last 7 days"},
			{Value: "30d", Label: "Last 30 days"},
		},
		"test": {
			{Label: "With test events"}, {Value: "no", Label: "without"}, {Value: "yes", Label: "only"},
		},
		"resend": {
			{Label: "With re-sends"}, {Value: "no", Label: "without"}, {Value: "yes", Label: "only"},
		},
		"slow": {{Label: "Any duration"}, {Value: "yes", Label: "5 s and more"}},
	}
}

func (c *Console) subscriptionOptions(ctx context.Context) ([]ui.Option, error) {
	summaries, _, err := c.Webhooks.SubscriptionSummaries(ctx,
		webhook.SummaryFilter{Limit: maxOptions})
	if err != nil {
		return nil, err
	}
	options := []ui.Option{{Label: "All subscriptions"}}
	for _, summary := range summaries {
		options = append(options, ui.Option{
			Value: summary.UID.String(),
			Label: summary.PartnerName + ", " + ui.HostOf(summary.URL),
		})
	}
	return options, nil
}

var eventOptions = ui.EventOptions

// maxPartners bounds the partners to choose from.
const maxPartners = 500

// partnerOptions are the partners to choose from, all named by the label first.
func (c *Console) partnerOptions(ctx context.Context, all string) ([]ui.Option, error) {
	partners, _, err := c.Partners.ListPartners(ctx, partner.Filter{Limit: maxPartners})
	if err != nil {
		return nil, err
	}
	options := []ui.Option{{Label: all}}
	for _, each := range partners {
		options = append(options, ui.Option{Value: each.UID.String(), Label: each.Name})
	}
	return options, nil
}
