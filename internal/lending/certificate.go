package lending

// CheckCertificate states when a completion certificate may be stored on a loan ahead of its
// final draw: the application is Approved, it has a loan (loan is not nil), and the certificate
// has files or metadata.
//
// Errors: APPLICATION_NOT_APPROVED, INVALID_STATE, COMPLETION_DOCUMENTS_REQUIRED.
func CheckCertificate(status ApplicationStatus, loan *Loan, documents Documents) error {
	if status != StatusApproved {
		return NewError(CodeApplicationNotApproved,
			"The application must be in Approved status before a completion certificate is uploaded")
	}
	if loan == nil {
		return errNoLoan()
	}
	if documents == DocumentsAbsent {
		return errDocumentsRequired()
	}
	return nil
}
