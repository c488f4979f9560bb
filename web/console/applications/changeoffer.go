package applications

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"

	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/views/ui"
)

func (c changing) confirmAcceptance() (changeForm, error) {
	switch {
	case c.now.Status.IsFinal():
		return changeForm{}, notNow("No offer can be accepted on an application that is %s", c.now.Status)
	case c.now.LoanOpen:
		return changeForm{}, notNow("The loan is open: another product can no longer be selected")
	case c.now.Decided && len(c.now.Offers) == 0:
		return changeForm{}, notNow("The decision made no offer that could be accepted")
	}
	options, err := c.acceptable()
	if err != nil {
		return changeForm{}, err
	}
	effects := []string{
		"Accepting sends no event.", "The borrower has had the welcome e-mail and does not get it again.",
	}
	if c.now.Communications == lending.CommunicationsPaused {
		effects[1] = "Communications are enabled, and the borrower gets the welcome e-mail at once."
	}
	switch {
	case c.now.Status != lending.StatusApproved:
	case c.now.Decided:
		effects = append(effects, "The loan opens, since the application is Approved.")
	default:
		effects = append(effects, "The loan opens once the decision has made the product's offer.")
	}
	event := c.tells(lending.EventStatusUpdated)
	effects = append(effects,
		"Applications closed with it: for each, "+strings.ToLower(event[:1])+event[1:])
	product, linked := c.get("product"), c.get("linked")
	return changeForm{
		button: "Accept an offer", note: "Sends no event.",
		form: ui.Confirmation{
			Title: "Accept an offer", Submit: "Accept for the borrower", Effects: effects,
			Controls: []ui.Control{
				{
					Kind: ui.ControlSelect, Name: "product", Label: "Product", Options: options,
					Value: product,
				},
				{
					Kind: ui.ControlArea, Name: "linked", Label: "Close these as well",
					Hint: "Ids of competing applications of the same merchant, one a line. Optional.",
				},
			},
		},
		after: map[string]any{"product_uid": product, "linked": strings.Fields(linked)},
		done:  "Accepted.",
		do: func(ctx context.Context, tx *postgres.Tx, by application.Caller) (bool, error) {
			acceptance, err := readAcceptance(c.uid, product, linked)
			if err != nil {
				return false, err
			}
			return c.Applications.AcceptOffer(ctx, tx, by, acceptance)
		},
	}, nil
}

// acceptable returns the products to choose from: those that made an offer and, before the
// decision, all that could.
func (c changing) acceptable() ([]ui.Option, error) {
	var options []ui.Option
	for _, offer := range c.now.Offers {
		options = append(options, ui.Option{
			Value: offer.ProductUID,
			Label: offer.ProductCode + ", " + ui.InCurrency(c.Currency, offer.ApprovedAmount) + " approved",
		})
	}
	if c.now.Decided {
		return options, nil
	}
	products, err := c.products()
	for _, product := range products {
		options = append(options, ui.Option{
			Value: product.UID, Label: product.Code + ", before the decision",
		})
	}
	return options, err
}

// readAcceptance reads which product is accepted and which applications are closed with it.
func readAcceptance(uid uuid.UUID, product, linked string) (application.Acceptance, error) {
	acceptance := application.Acceptance{ApplicationUID: uid}
	var errs lending.FieldErrors
	var err error
	if acceptance.ProductUID, err = uuid.Parse(product); err != nil {
		errs.Add("product", `"product" must be chosen from the list`)
	}
	for text := range strings.FieldsSeq(linked) {
		other, err := uuid.Parse(text)
		if err != nil {
			errs.Add("linked", `%.60q is not the id of an application`, text)
			continue
		}
		acceptance.Linked = append(acceptance.Linked, other)
	}
	return acceptance, errs.Err()
}

// offers describes the current state, with amounts and terms of every offer.
func (c changing) offers() string {
	var texts []string
	for _, offer := range c.now.Offers {
		texts = append(texts, strings.Join([]string{
			offer.ProductCode, offer.ApprovedAmount.String(), offer.Term,
			offer.InterestRate.String() + " %", offer.MerchantFeePercentage.String() + " %",
		}, " "))
	}
	drawn := "nothing drawn"
	if c.now.Loan != nil && c.now.Loan.Drawn().IsPositive() {
		drawn = c.now.Loan.Drawn().String() + " drawn"
	}
	return c.standing() + "; " + strings.Join(append(texts, drawn), "; ")
}

// affected says which offers a change applies to.
func (c changing) affected() string {
	if c.now.SelectedProductCode != "" {
		return "Changes the selected offer, of " + c.now.SelectedProductCode + "."
	}
	return "No product is selected: every offer is changed."
}

func (c changing) confirmAmount() (changeForm, error) {
	offer := lending.ReportedOffer(c.now.Offers, c.now.Selected())
	if offer == nil {
		return changeForm{}, notNow("There is no offer whose amount could change")
	}
	// Changing to the present amount shows whether the rules allow any change now.
	if _, err := c.now.Approval().ChangeAmount(offer.ApprovedAmount); err != nil &&
		lending.ErrorCode(err) == lending.CodeInvalidState {
		return changeForm{}, err
	}
	event := c.tells(lending.EventAmountUpdated)
	effects := []string{
		c.affected(),
		"At most the offer's maximum, " + ui.InCurrency(c.Currency, offer.MaxAmount) + ".", event,
	}
	if c.now.Loan != nil {
		effects = slices.Insert(effects, 2,
			"The loan takes the same amount, which cannot be less than what was drawn, "+
				ui.InCurrency(c.Currency, c.now.Loan.Drawn())+". Stages not drawn yet take their shares of it.")
	}
	typed := c.get("approved_amount")
	return changeForm{
		button: "Change the amount", note: event,
		form: ui.Confirmation{
			Title: "Change the approved amount", Submit: "Change the amount", Effects: effects,
			Controls: []ui.Control{{
				Name: "approved_amount", Label: "Approved amount", Required: true, MaxLength: 20,
				Value: offer.ApprovedAmount.String(), Hint: ui.AmountHint(c.Currency),
				Autocomplete: "off", Autofocus: true,
			}},
		},
		after: map[string]any{"approved_amount": typed}, done: "The approved amount is changed.",
		do: func(ctx context.Context, tx *postgres.Tx, by application.Caller) (bool, error) {
			var errs lending.FieldErrors
			amount := errs.Money("approved_amount", typed)
			if err := errs.Err(); err != nil {
				return false, err
			}
			before := c.offers()
			var err error
			c.now.Application, err = c.Applications.ChangeAmount(ctx, tx, by, c.uid, amount)
			return c.offers() != before, err
		},
	}, nil
}

func (c changing) confirmTerms() (changeForm, error) {
	offer := lending.ReportedOffer(c.now.Offers, c.now.Selected())
	if offer == nil {
		return changeForm{}, notNow("There is no offer whose terms could change")
	}
	if _, err := c.now.Approval().ChangeTerms(lending.Terms{Term: &offer.Term}); err != nil {
		return changeForm{}, err
	}
	var controls []ui.Control
	typed, after := map[string]*string{}, map[string]any{}
	for _, term := range []struct{ name, label, now string }{
		{"term", "Term in months", offer.Term},
		{"interest_rate", "Interest rate in percent", offer.InterestRate.String()},
		{
			"merchant_fee_percentage", "Merchant fee in percent",
			offer.MerchantFeePercentage.String(),
		},
	} {
		controls = append(controls, ui.Control{
			Name: term.name, Label: term.label, Hint: "Now " + term.now + ". Empty keeps it.",
			MaxLength: 20, Autocomplete: "off",
		})
		if text := c.get(term.name); text != "" {
			typed[term.name], after[term.name] = &text, text
		}
	}
	event := c.tells(lending.EventOfferUpdated)
	return changeForm{
		button: "Change the terms", note: event,
		form: ui.Confirmation{
			Title: "Change the terms", Submit: "Change the terms", Controls: controls,
			Effects: []string{c.affected(), "A changed fee applies to later draws only.", event},
		},
		after: after, done: "The terms are changed.",
		do: func(ctx context.Context, tx *postgres.Tx, by application.Caller) (bool, error) {
			terms, err := lending.ParseTerms(
				typed["term"], typed["interest_rate"], typed["merchant_fee_percentage"])
			if err != nil {
				return false, err
			}
			before := c.offers()
			c.now.Application, err = c.Applications.ChangeTerms(ctx, tx, by, c.uid, terms)
			return c.offers() != before, err
		},
	}, nil
}
