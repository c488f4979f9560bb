package lending

// Draw is the outcome of a draw request.
type Draw struct {
	// Kind is empty if there is no loan or nothing is left to draw.
	Kind DrawKind
	// Stage is the number of the stage that is paid out, 0 if there is none.
	Stage           int
	Gross, Fee, Net Money
	// NewLoanAmount replaces the loan amount, nil if it stays.
	NewLoanAmount *Money
	// DocumentsRequired reports whether the request must come with files or metadata.
	DocumentsRequired bool
}

// DecideDraw states the rules for draws (specification sections 3.3, 4.1 and 7), for the draw
// itself and for its preview. The checks run in this order, and the first that fails decides the
// error: Approved, a loan, nothing pending, something left, kind, documents, amounts. Even a
// refused draw has the kind and stage of the loan's next draw, if there is one.
//
// In this file, "draw rule" is a rule of section 3.3 and "request rule" one of section 4.1.
//
// Errors: APPLICATION_NOT_APPROVED, INVALID_STATE without a loan (nil),
// DRAW_PENDING, AMOUNT_EXCEEDS_BALANCE, EARLY_COMPLETION_NOT_ALLOWED,
// COMPLETION_DOCUMENTS_REQUIRED, COMPLETION_DOCUMENTS_NOT_ALLOWED,
// VALIDATION_ERROR.
func DecideDraw(status ApplicationStatus, loan *Loan, request DrawRequest) (Draw, error) {
	var draw Draw
	var noDraw error
	if loan != nil {
		draw, noDraw = nextDraw(*loan, request)
	}
	switch {
	case status != StatusApproved: // draw rule 1
		return draw, notApproved(draw, request.Documents)
	case loan == nil:
		return draw, errNoLoan()
	case loan.IsPending(): // draw rule 2, and with it draw rule 5
		return draw, NewError(CodeDrawPending, "Error in requestPublicDrawV2: "+
			"a currently pending draw exists for this loan; try again when it has completed")
	case noDraw != nil: // draw rule 3, or request rule 3
		return draw, noDraw
	}
	if err := checkDocuments(draw, request.Documents); err != nil {
		return draw, err
	}
	if draw.Kind.Completes() {
		return completingDraw(*loan, draw, request)
	}
	return regularDraw(*loan, draw, request)
}

// notApproved returns the refusal, whose text mentions documents if the draw comes with them.
func notApproved(draw Draw, documents Documents) error {
	if documents == DocumentsGiven || documents == DocumentsAssumed && draw.DocumentsRequired {
		return NewError(CodeApplicationNotApproved, "The application must be in Approved status "+
			"before requesting a draw with an accompanying completion certificate")
	}
	return NewError(CodeApplicationNotApproved,
		"The application must be in Approved status before requesting a draw")
}

// IsFinal reports whether a draw takes the whole balance (draw rule 4): it is for the last
// stage, or the balance is at most the scheduled amount of its stage.
func IsFinal(scheduled Money, last bool, balance Money) bool {
	return last || !scheduled.Less(balance)
}

// nextDraw finds the stage and kind of the next draw (draw rule 4).
func nextDraw(loan Loan, request DrawRequest) (Draw, error) {
	stage, found := loan.NextStage()
	if !found || !loan.Balance().IsPositive() {
		return Draw{}, NewError(CodeAmountExceedsBalance,
			"Nothing is left to draw: the available balance of the loan is %s", loan.Balance())
	}
	draw := Draw{Kind: DrawRegular, Stage: stage.Number}
	switch {
	case IsFinal(stage.Scheduled, loan.isLast(stage), loan.Balance()):
		draw.Kind = DrawFinal
	case request.ProjectCompletedEarly:
		draw.Kind = DrawEarly
	}
	draw.DocumentsRequired = draw.Kind.Completes()
	// Request rule 3. An early draw is never for the last stage, so the loan has several.
	if draw.Kind == DrawEarly && len(loan.live()) == 0 {
		return draw, NewError(CodeEarlyCompletionForbidden,
			"Early completion is not allowed on the first draw of a loan with multiple disbursements")
	}
	return draw, nil
}

// checkDocuments applies request rules 2 and 3 (documents required) and 5 (not allowed).
func checkDocuments(draw Draw, documents Documents) error {
	switch {
	case draw.DocumentsRequired && documents == DocumentsAbsent:
		return errDocumentsRequired()
	case !draw.DocumentsRequired && documents == DocumentsGiven:
		return NewError(CodeDocumentsNotAllowed, "Completion documentation was provided but this is "+
			"not the final draw for the loan; only submit documentation for the final draw")
	}
	return nil
}

// completingDraw takes the whole balance, that of the revised loan amount if one is given
// (request rules 2 and 3). It ignores a reduced disbursement amount (request rule 4).
func completingDraw(loan Loan, draw Draw, request DrawRequest) (Draw, error) {
	revised := request.UpdatedLoanAmount
	if revised == nil {
		return draw.of(loan.Balance(), loan.FeePercent), nil
	}
	if loan.OriginalAmount.Less(*revised) {
		return draw, amountTooHigh(PartLoanAmount,
			"must not exceed the original loan amount", loan.OriginalAmount)
	}
	if !loan.Drawn().Less(*revised) {
		return draw, Invalid(PartLoanAmount, "%q must be greater than the amount already drawn, %s",
			PartLoanAmount, loan.Drawn())
	}
	draw.NewLoanAmount = revised
	return draw.of(revised.Sub(loan.Drawn()), loan.FeePercent), nil
}

// regularDraw takes the scheduled amount, or the lower one that was requested (request rule 1).
func regularDraw(loan Loan, draw Draw, request DrawRequest) (Draw, error) {
	var errs FieldErrors
	if request.UpdatedLoanAmount != nil {
		errs.Add(PartLoanAmount, "%q is allowed only on a final or early completion draw; leave it out",
			PartLoanAmount)
	}
	reduced := request.UpdatedDisbursementAmount
	if reduced != nil && !reduced.IsPositive() {
		errs.Add(PartDisbursementAmount, "%q must be greater than 0", PartDisbursementAmount)
	}
	if err := errs.Err(); err != nil {
		return draw, err
	}
	calculated := loan.Stages[draw.Stage-1].Scheduled
	if reduced == nil {
		return draw.of(calculated, loan.FeePercent), nil
	}
	if !reduced.Less(calculated) {
		return draw, amountTooHigh(PartDisbursementAmount,
			"must be less than the calculated draw amount", calculated)
	}
	return draw.of(*reduced, loan.FeePercent), nil
}

// amountTooHigh names the part in the details, as a validation error does.
func amountTooHigh(part, rule string, bound Money) error {
	refusal := Invalid(part, "%q %s, %s", part, rule, bound)
	refusal.Code = CodeAmountExceedsBalance
	return refusal
}

// of returns the draw with its amounts: the fee is a share of the gross, the
// net what remains of it.
func (d Draw) of(gross Money, feePercent Percent) Draw {
	d.Gross = gross
	d.Fee = gross.Portion(feePercent)
	d.Net = gross.Sub(d.Fee)
	return d
}
