package lending

import (
	"cmp"
	"slices"
	"strconv"
)

// maxTermMonths bounds a term: fifty years.
const maxTermMonths = 600

// Offer is what a product would lend to an application.
type Offer struct {
	ProductUID  string `db:"product_uid" json:"product_uid"`
	ProductCode string `db:"code" json:"product_code"`
	ProductName string `db:"name" json:"product_name"`
	// Term is the number of months, as digits.
	Term string `json:"term"`
	// InterestRate is the annual rate.
	InterestRate Percent `db:"interest_rate" json:"interest_rate"`
	// BorrowerMax is what the borrower qualifies for, ProjectMax what the
	// project allows, MaxAmount the lesser of the two.
	BorrowerMax Money `db:"borrower_max_approved_amount" json:"borrower_max_approved_amount"`
	ProjectMax  Money `db:"project_max_approved_amount" json:"project_max_approved_amount"`
	MaxAmount   Money `db:"max_amount" json:"max_amount"`
	// ApprovedAmount is at most MaxAmount.
	ApprovedAmount        Money   `db:"approved_amount" json:"approved_amount"`
	MerchantFeePercentage Percent `db:"merchant_fee_percentage" json:"merchant_fee_percentage"`
}

// SelectedOffer returns the offer of the product, false if there is none.
func SelectedOffer(offers []Offer, productUID string) (Offer, bool) {
	at := indexOffer(offers, productUID)
	if at < 0 {
		return Offer{}, false
	}
	return offers[at], true
}

// ReportedOffer returns the offer that events show: the selected one, else the one with the
// highest approved amount (of equal ones the first by product code); nil without offers.
// productUID is empty while none is selected.
func ReportedOffer(offers []Offer, productUID string) *Offer {
	if selected, ok := SelectedOffer(offers, productUID); ok {
		return &selected
	}
	if len(offers) == 0 {
		return nil
	}
	highest := slices.MaxFunc(offers, func(a, b Offer) int {
		return cmp.Or(a.ApprovedAmount.Cmp(b.ApprovedAmount), cmp.Compare(b.ProductCode, a.ProductCode))
	})
	return &highest
}

// Approval is the input of a change of amount or terms.
type Approval struct {
	Status ApplicationStatus
	Offers []Offer
	// ProductUID is the selected product, empty while there is none.
	ProductUID string
	// Loan is nil until it opens.
	Loan *Loan
}

// OfferChange is the outcome of a change of amount or terms.
type OfferChange struct {
	// Changed is false if the offers already had these values; there is then nothing to record.
	Changed bool
	// Offers holds every offer of the application after the change, in the order given.
	Offers []Offer
	// Previous and Updated are the reported offer before and after, chosen among the offers that
	// changed if any did.
	Previous, Updated Offer
	// Loan is the loan after the change, nil if there is none.
	Loan *Loan
}

// Terms is a change of terms; a nil field keeps its value.
type Terms struct {
	Term                  *string
	InterestRate          *Percent
	MerchantFeePercentage *Percent
}

// ParseTerms reads a change of terms, nil for an absent field. Error:
// VALIDATION_ERROR with every error, also if no field is given.
func ParseTerms(term, interestRate, merchantFee *string) (Terms, error) {
	var terms Terms
	var errs FieldErrors
	if term == nil && interestRate == nil && merchantFee == nil {
		errs.Add("term", "at least one of %q, %q and %q is required",
			"term", "interest_rate", "merchant_fee_percentage")
	}
	if term != nil {
		terms.Term = new(errs.Term("term", *term))
	}
	if interestRate != nil {
		terms.InterestRate = new(errs.Percent("interest_rate", *interestRate))
	}
	if merchantFee != nil {
		terms.MerchantFeePercentage = new(errs.Percent("merchant_fee_percentage", *merchantFee))
	}
	return terms, errs.Err()
}

// Term checks the term of a field, whole months as digits from 1 to 600, and
// records an error otherwise. It returns the term without leading zeros.
func (f *FieldErrors) Term(field, text string) string {
	months, err := strconv.Atoi(text)
	if err != nil || !isDigits(text) || months < 1 || months > maxTermMonths {
		f.Add(field, "%q must be a number of months from 1 to %d", field, maxTermMonths)
		return ""
	}
	return strconv.Itoa(months)
}

// ChangeAmount sets the approved amount of the selected offer, or of every offer
// while none is selected, and carries it over to the open loan. Errors:
// INVALID_STATE unless Approved, without offers, or once the last stage is drawn;
// VALIDATION_ERROR for zero, above max_amount or below what was drawn.
func (a Approval) ChangeAmount(amount Money) (OfferChange, error) {
	if a.Status != StatusApproved {
		return OfferChange{}, NewError(CodeInvalidState,
			"the approved amount can be changed only while the application is Approved; it is %s", a.Status)
	}
	if err := a.checkOffers(); err != nil {
		return OfferChange{}, err
	}
	if a.Loan != nil {
		// Without a stage left, no draw could pay out the changed amount.
		if _, left := a.Loan.NextStage(); !left || a.Loan.IsCompleted() {
			return OfferChange{}, NewError(CodeInvalidState,
				"the approved amount can no longer be changed: the loan's last stage has been drawn")
		}
	}
	if err := a.checkAmount(amount); err != nil {
		return OfferChange{}, err
	}
	return a.change(func(offer *Offer) { offer.ApprovedAmount = amount }), nil
}

// ChangeTerms sets terms of the selected offer, or of every offer while none is
// selected. A changed fee applies to later draws. Errors: INVALID_STATE unless
// Hard Pull, Pend Clearance or Approved, or without offers.
func (a Approval) ChangeTerms(terms Terms) (OfferChange, error) {
	allowed := []ApplicationStatus{StatusHardPull, StatusPendClearance, StatusApproved}
	if !slices.Contains(allowed, a.Status) {
		return OfferChange{}, NewError(CodeInvalidState,
			"the terms can be changed only in status %s; the application is %s",
			JoinNames(allowed), a.Status)
	}
	if err := a.checkOffers(); err != nil {
		return OfferChange{}, err
	}
	return a.change(func(offer *Offer) {
		offer.Term = valueOr(terms.Term, offer.Term)
		offer.InterestRate = valueOr(terms.InterestRate, offer.InterestRate)
		offer.MerchantFeePercentage = valueOr(terms.MerchantFeePercentage, offer.MerchantFeePercentage)
	}), nil
}

func (a Approval) checkOffers() error {
	if len(a.Offers) == 0 {
		return NewError(CodeInvalidState, "the application has no offer to change")
	}
	return nil
}

func (a Approval) checkAmount(amount Money) error {
	const field = "approved_amount"
	if !amount.IsPositive() {
		return Invalid(field, "%q must be greater than 0", field)
	}
	for _, offer := range a.affected() {
		if offer.MaxAmount.Less(amount) {
			return Invalid(field, "%q must be at most the max_amount of the offer of product %s, %s",
				field, offer.ProductCode, offer.MaxAmount)
		}
	}
	if a.Loan != nil && amount.Less(a.Loan.Drawn()) {
		return Invalid(field, "%q must be at least the amount already drawn, %s", field, a.Loan.Drawn())
	}
	return nil
}

// affected returns the offers that a change applies to, as pointers into Offers.
func (a Approval) affected() []*Offer {
	if at := indexOffer(a.Offers, a.ProductUID); at >= 0 {
		return []*Offer{&a.Offers[at]}
	}
	all := make([]*Offer, len(a.Offers))
	for i := range a.Offers {
		all[i] = &a.Offers[i]
	}
	return all
}

// change applies edit to a copy. It reports an offer that changed, even if ReportedOffer would
// choose another, and Previous and Updated are of the same product, because a receiver compares
// the two.
func (a Approval) change(edit func(*Offer)) OfferChange {
	before := a.Offers
	a.Offers = slices.Clone(a.Offers)
	for _, offer := range a.affected() {
		edit(offer)
	}
	var edited []Offer // before the edit
	for i, offer := range before {
		if !offer.Equal(a.Offers[i]) {
			edited = append(edited, offer)
		}
	}
	candidates := edited
	if len(edited) == 0 {
		candidates = before
	}
	previous := *ReportedOffer(candidates, a.ProductUID)
	updated, _ := SelectedOffer(a.Offers, previous.ProductUID)
	changed := OfferChange{
		Changed:  len(edited) > 0,
		Offers:   a.Offers,
		Previous: previous,
		Updated:  updated,
	}
	if a.Loan == nil {
		return changed
	}
	loan := *a.Loan
	loan.FeePercent = updated.MerchantFeePercentage
	if amount := updated.ApprovedAmount; !loan.OriginalAmount.Equal(amount) {
		loan.OriginalAmount = amount
		loan.Stages = loan.stagesFor(amount)
	}
	changed.Loan = &loan
	return changed
}

// Equal reports whether both offers have the same content.
func (o Offer) Equal(other Offer) bool {
	return o.payload(true) == other.payload(true) && o.ProductUID == other.ProductUID &&
		o.ProductCode == other.ProductCode && o.ProductName == other.ProductName
}

func indexOffer(offers []Offer, productUID string) int {
	return slices.IndexFunc(offers, func(o Offer) bool { return o.ProductUID == productUID })
}

func valueOr[T any](value *T, otherwise T) T {
	if value == nil {
		return otherwise
	}
	return *value
}
