package lending

// ApplicationNotFound is the answer of accept-offer, and of every operation whose body names an
// application, if the application does not exist or is another merchant's.
func ApplicationNotFound() *Error {
	return NewError(CodeApplicationNotFound,
		"Could not find the specified application; check the id submitted")
}

// ProductNotFound is the answer to a body that names no existing product, an inactive one, or
// one that made the application no offer.
func ProductNotFound() *Error {
	return NewError(CodeProductNotFound,
		"Could not find the specified product; check the id submitted")
}

func errNoLoan() error {
	return NewError(CodeInvalidState,
		"the application has no loan yet: no product that made an offer is selected; accept an offer")
}

func errDocumentsRequired() error {
	return NewError(CodeDocumentsRequired,
		"File or metadata is required for completion certificate upload")
}
