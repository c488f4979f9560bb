package lending

import (
	"cmp"
	"slices"

	"github.com/shopspring/decimal"
)

// Product is a loan product.
type Product struct {
	UID  string `json:"product_uid"`
	Code string `json:"code"`
	Name string `json:"name"`
	// Term is the number of months, as digits.
	Term                  string   `json:"term"`
	InterestRate          Percent  `json:"interest_rate"`
	MerchantFeePercentage Percent  `json:"merchant_fee_percentage"`
	Schedule              Schedule `json:"schedule"`
	// Min and Max bound what the product lends.
	Min Money `json:"min_amount"`
	Max Money `json:"max_amount"`
}

// DecisionRequest is the input of Decide.
type DecisionRequest struct {
	Status ApplicationStatus
	// Decided reports whether the decision has run.
	Decided bool
	// Products are the active products.
	Products  []Product
	Requested Money
	// AnnualIncome is nil if the borrower did not state it.
	AnnualIncome *Money
	LastName     string
	// Switches lets the borrower's last name steer the outcome, for development.
	Switches bool
}

// Decision is the status that an application gets and the offers made to it,
// ordered by product code. Pending Review means that it is not decided yet.
type Decision struct {
	Status ApplicationStatus
	Offers []Offer
}

// The last names that steer a decision in development.
const (
	lastNameDeclined  = "Declined"
	lastNameReview    = "Review"
	lastNameClearance = "Clearance"
)

// incomeShare is the part of the annual income that a borrower may owe.
var incomeShare = Percent{decimal.NewFromInt(40)}

// Decide makes the offers and the status. An application that a person already moved on keeps
// its status if it gets an offer. Error: INVALID_STATE if it is already decided, Declined or
// Closed, or if it gets no offer and its status can no longer become Declined.
func Decide(request DecisionRequest) (Decision, error) {
	switch {
	case request.Decided:
		return Decision{}, NewError(CodeInvalidState,
			"the application has already been decided; its status is %s", request.Status)
	case request.Status.IsFinal():
		return Decision{}, NewError(CodeInvalidState,
			"the decision cannot run on an application that is %s", request.Status)
	}
	decision := decide(request)
	if request.Status == StatusPendingReview || decision.Status == StatusPendingReview {
		return decision, nil
	}
	if len(decision.Offers) > 0 {
		decision.Status = request.Status
		return decision, nil
	}
	// While undecided it can still be helped; decided without an offer, it would be stuck.
	if _, err := request.Status.Move(decision.Status); err != nil {
		return Decision{}, NewError(CodeInvalidState,
			"no product makes an offer, and an application that is %s cannot become %s, so it stays "+
				"undecided; close it, or move it to %s and run the decision again",
			request.Status, decision.Status, StatusPendClearance)
	}
	return decision, nil
}

func decide(request DecisionRequest) Decision {
	if request.Switches {
		switch request.LastName {
		case lastNameDeclined:
			return Decision{Status: StatusDeclined}
		case lastNameReview:
			return Decision{Status: StatusPendingReview}
		case lastNameClearance:
			return Decision{Status: StatusPendClearance, Offers: makeOffers(request)}
		}
	}
	offers := makeOffers(request)
	if len(offers) == 0 {
		return Decision{Status: StatusDeclined}
	}
	return Decision{Status: StatusHardPullAuthorization, Offers: offers}
}

func makeOffers(request DecisionRequest) []Offer {
	var offers []Offer
	for _, product := range request.Products {
		borrowerMax := product.Max
		if request.AnnualIncome != nil {
			borrowerMax = request.AnnualIncome.Portion(incomeShare)
		}
		projectMax := MinMoney(request.Requested, product.Max)
		maxAmount := MinMoney(borrowerMax, projectMax)
		offer := Offer{
			ProductUID: product.UID, ProductCode: product.Code, ProductName: product.Name,
			Term:                  product.Term,
			InterestRate:          product.InterestRate,
			BorrowerMax:           borrowerMax,
			ProjectMax:            projectMax,
			MaxAmount:             maxAmount,
			ApprovedAmount:        MinMoney(maxAmount, request.Requested),
			MerchantFeePercentage: product.MerchantFeePercentage,
		}
		// Even a product without a minimum offers more than zero, or makes no offer.
		if offer.ApprovedAmount.IsPositive() && !offer.ApprovedAmount.Less(product.Min) {
			offers = append(offers, offer)
		}
	}
	slices.SortFunc(offers, func(a, b Offer) int { return cmp.Compare(a.ProductCode, b.ProductCode) })
	return offers
}
