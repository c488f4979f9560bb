package console

import (
	"context"
	"strings"

	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/views/ui"
)

// offersSeen writes amounts and terms of every offer that a change applies to.
func offersSeen(s state) string {
	var texts []string
	for _, offer := range s.app.Offers {
		texts = append(texts, strings.Join([]string{
			offer.ProductCode, offer.ApprovedAmount.String(), offer.Term,
			offer.InterestRate.String() + " %", offer.MerchantFeePercentage.String() + " %",
		}, " "))
	}
	drawn := "nothing drawn"
	if s.loan != nil && s.loan.Drawn().IsPositive() {
		drawn = s.loan.Drawn().String() + " drawn"
	}
	return string(s.app.Status) + ", " + strings.Join(append(texts, drawn), "; ")
}

// approval is what a change of amount or terms is decided on.
func (s state) approval() lending.Approval {
	return lending.Approval{
		Status: s.app.Status, Offers: s.app.Offers, ProductUID: selectedUID(s.app), Loan: s.loan,
	}
}

// affects says which offers a change applies to.
func (s state) affects() string {
	if s.app.SelectedProductCode != "" {
		return "Changes the selected offer, of " + s.app.SelectedProductCode + "."
	}
	return "No product is selected: every offer is changed."
}

func amountChange(a asked) (appChange, error) {
	offer := lending.ReportedOffer(a.now.app.Offers, selectedUID(a.now.app))
	if offer == nil {
		return appChange{}, notNow("There is no offer whose amount could change")
	}
	// Asked with the present amount, the rules say whether it may change at all.
	if _, err := a.now.approval().ChangeAmount(offer.ApprovedAmount); err != nil &&
		lending.ErrorCode(err) == lending.CodeInvalidState {
		return appChange{}, err
	}
	says := []string{
		a.now.affects(), "At most the offer's maximum, " + ui.Amount(offer.MaxAmount) + ".",
	}
	if a.now.loan != nil {
		says = append(says, "The loan takes the same amount, which cannot be less than what was drawn, "+
			ui.Amount(a.now.loan.Drawn())+". Stages not drawn yet take their shares of it.")
	}
	typedAmount := a.get("approved_amount")
	return appChange{
		form: ui.AskForm{
			Title: "Change the approved amount", Submit: "Change the amount",
			Says: append(says, a.tells(lending.EventAmountUpdated)),
			Controls: []ui.Control{{
				Name: "approved_amount", Label: "Approved amount", Required: true, MaxLength: 20,
				Value: offer.ApprovedAmount.String(), Hint: "For example 12500.00.",
				Autocomplete: "off", Autofocus: true,
			}},
		},
		seen: offersSeen, action: "application.amount", done: "The approved amount is changed.",
		after: map[string]any{"approved_amount": typedAmount},
		do: func(ctx context.Context, tx *postgres.Tx, by application.Caller) error {
			var faults lending.Faults
			amount := faults.Money("approved_amount", typedAmount)
			if err := faults.Err(); err != nil {
				return err
			}
			_, err := a.Applications.ChangeAmount(ctx, tx, by, a.uid, amount)
			return err
		},
	}, nil
}

func termsChange(a asked) (appChange, error) {
	offer := lending.ReportedOffer(a.now.app.Offers, selectedUID(a.now.app))
	if offer == nil {
		return appChange{}, notNow("There is no offer whose terms could change")
	}
	if _, err := a.now.approval().ChangeTerms(lending.Terms{Term: &offer.Term}); err != nil {
		return appChange{}, err
	}
	field := func(name, label, now string) ui.Control {
		return ui.Control{
			Name: name, Label: label, Hint: "Now " + now + ". Empty keeps it.", MaxLength: 20,
			Autocomplete: "off",
		}
	}
	after := map[string]any{}
	given := func(name string) *string {
		text := a.get(name)
		if text == "" {
			return nil
		}
		after[name] = text
		return &text
	}
	term, rate := given("term"), given("interest_rate")
	fee := given("merchant_fee_percentage")
	return appChange{
		form: ui.AskForm{
			Title: "Change the terms", Submit: "Change the terms",
			Says: []string{
				a.now.affects(), "A changed fee applies to later draws only.",
				a.tells(lending.EventOfferUpdated),
			},
			Controls: []ui.Control{
				field("term", "Term in months", offer.Term),
				field("interest_rate", "Interest rate in percent", offer.InterestRate.String()),
				field("merchant_fee_percentage", "Merchant fee in percent",
					offer.MerchantFeePercentage.String()),
			},
		},
		seen: offersSeen, action: "application.terms", after: after, done: "The terms are changed.",
		do: func(ctx context.Context, tx *postgres.Tx, by application.Caller) error {
			terms, err := lending.ParseTerms(term, rate, fee)
			if err != nil {
				return err
			}
			_, err = a.Applications.ChangeTerms(ctx, tx, by, a.uid, terms)
			return err
		},
	}, nil
}
