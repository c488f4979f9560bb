package event

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// Welcome schedules the welcome mail of an application whose communications are enabled. However
// often it is called, a borrower gets only one.
func (r *Recorder) Welcome(ctx context.Context, tx *postgres.Tx, applicationUID uuid.UUID) error {
	return r.mail(ctx, tx, applicationUID, mailRequest{kind: email.KindWelcome})
}

// mailFor schedules the mail that goes with an event: a stipulation when the application waits
// for the borrower, and a mail for each new task (specification section 3.2).
func (r *Recorder) mailFor(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, event lending.Event,
) error {
	switch event.Kind {
	case lending.EventStatusUpdated:
		if lending.ApplicationStatus(event.Status).NeedsStipulation() {
			return r.mail(ctx, tx, uid,
				mailRequest{email.KindStipulation, email.ParamStatus, event.Status})
		}
	case lending.EventTaskCreated:
		return r.mail(ctx, tx, uid,
			mailRequest{email.KindTask, email.ParamTaskTitle, *event.TaskTitle})
	default: // nothing for the borrower to do
	}
	return nil
}

// mailRequest is a kind of mail and the one parameter that comes from its cause.
type mailRequest struct {
	kind email.Kind
	// param names the parameter, empty for none.
	param, value string
}

// borrower holds the content of a mail that does not depend on its cause.
type borrower struct {
	FirstName      string                 `db:"borrower_first_name"`
	LastName       string                 `db:"borrower_last_name"`
	Address        string                 `db:"borrower_email"`
	Communications lending.Communications `db:"communications"`
	ProjectName    string                 `db:"project_name"`
	MerchantName   string                 `db:"merchant_name"`

	// These are nil until an offered product is selected.
	ProductName    *string          `db:"product_name"`
	ApprovedAmount *lending.Money   `db:"approved_amount"`
	Term           *string          `db:"term"`
	InterestRate   *lending.Percent `db:"interest_rate"`
}

// mail logs a mail to the borrower and, unless communications are paused,
// queues it.
func (r *Recorder) mail(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, request mailRequest,
) error {
	var to borrower
	err := tx.GetContext(ctx, &to, `
		SELECT a.borrower_first_name,
		       a.borrower_last_name,
		       a.borrower_email,
		       a.communications,
		       a.project_name,
		       m.name AS merchant_name,
		       p.name AS product_name,
		       o.approved_amount,
		       o.term,
		       o.interest_rate
		  FROM applications a
		  JOIN merchants m USING (merchant_uid)
		  LEFT JOIN offers o ON o.application_uid = a.application_uid
		                    AND o.product_uid = a.selected_product_uid
		  LEFT JOIN products p ON p.product_uid = o.product_uid
		 WHERE a.application_uid = $1`, uid)
	if err != nil {
		return fmt.Errorf("loading the borrower of application %s: %w", uid, err)
	}
	params := to.params()
	if request.param != "" {
		params[request.param] = request.value
	}
	return r.Emails.Schedule(ctx, tx, email.Message{
		Kind:           request.kind,
		ApplicationUID: uid,
		ToName:         to.FirstName + " " + to.LastName,
		ToAddress:      to.Address,
		Paused:         to.Communications == lending.CommunicationsPaused,
		Params:         params,
	})
}

func (b borrower) params() map[string]string {
	params := map[string]string{
		email.ParamFirstName:    b.FirstName,
		email.ParamProjectName:  b.ProjectName,
		email.ParamMerchantName: b.MerchantName,
	}
	if b.ProductName != nil {
		params[email.ParamProductName] = *b.ProductName
		params[email.ParamApprovedAmount] = b.ApprovedAmount.String()
		params[email.ParamTerm] = *b.Term
		params[email.ParamInterestRate] = b.InterestRate.String()
	}
	return params
}
