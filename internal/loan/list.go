package loan

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// ListState says what prevents the next draw of a loan, if anything does.
type ListState string

// The states of a loan in a list.
const (
	ListPending   ListState = "pending"   // the money of a draw is under way
	ListCompleted ListState = "completed" // nothing is left to draw
	ListBlocked   ListState = "blocked"   // the application is not Approved
	ListReady     ListState = "ready"     // the next draw may be requested
)

// ListStates lists every state once.
func ListStates() []ListState {
	return []ListState{ListReady, ListPending, ListBlocked, ListCompleted}
}

// ListFilter narrows a list of loans; zero fields do not narrow it.
type ListFilter struct {
	State      ListState
	PartnerUID uuid.UUID
	ProductUID uuid.UUID
	// Draw selects loans with a draw in this state.
	Draw lending.FundingStatus
}

// Summary is a loan in a list.
type Summary struct {
	UID          uuid.UUID                 `db:"application_uid"`
	Status       lending.ApplicationStatus `db:"status"`
	FirstName    string                    `db:"borrower_first_name"`
	LastName     string                    `db:"borrower_last_name"`
	PartnerName  string                    `db:"partner_name"`
	MerchantName string                    `db:"merchant_name"`
	ProductCode  string                    `db:"code"`
	Amount       lending.Money             `db:"loan_amount"`
	Drawn        lending.Money             `db:"drawn_amount"`
	OpenedAt     time.Time                 `db:"opened_at"`
	// PendingID and Pending are the id and amount of the draw under way, nil if there is none.
	PendingID *int64         `db:"pending_id"`
	Pending   *lending.Money `db:"pending_amount"`
	// NextStage and NextAmount describe the next draw if it is requested without amounts, nil when
	// nothing is left. NextIsLast means that its stage is the schedule's last.
	NextStage  *int           `db:"next_stage"`
	NextAmount *lending.Money `db:"next_amount"`
	NextIsLast bool           `db:"next_is_last"`
}

// State returns what prevents the next draw.
func (s Summary) State() ListState {
	switch {
	case s.PendingID != nil:
		return ListPending
	case !s.Drawn.Less(s.Amount):
		return ListCompleted
	case s.Status != lending.StatusApproved:
		return ListBlocked
	}
	return ListReady
}

// setNextAmount turns the scheduled amount of the next stage into what its draw pays out.
func (s *Summary) setNextAmount() {
	balance := s.Amount.Sub(s.Drawn)
	if s.NextAmount != nil && lending.IsFinal(*s.NextAmount, s.NextIsLast, balance) {
		s.NextAmount = &balance
	}
}

const (
	isPending = `EXISTS (SELECT 1 FROM disbursements d
		 WHERE d.application_uid = l.application_uid
		   AND d.status IN ('FUNDING_REQUESTED', 'FUNDING_PROCESSING'))`
	// The last draw may be a regular one: the amount can be lowered to what is already drawn.
	isCompleted = `l.drawn_amount >= l.loan_amount`
)

const selectLoans = `
	SELECT l.application_uid, a.status, a.borrower_first_name, a.borrower_last_name,
	       p.name AS partner_name, m.name AS merchant_name, product.code, l.loan_amount,
	       l.drawn_amount, l.opened_at,
	       pending.merchant_disbursement_id AS pending_id,
	       pending.gross_amount AS pending_amount,
	       next.stage AS next_stage, next.scheduled_amount AS next_amount,
	       coalesce(next.is_last, false) AS next_is_last
	  FROM loans l
	  JOIN applications a USING (application_uid)
	  JOIN partners p ON p.partner_uid = a.partner_uid
	  JOIN merchants m ON m.merchant_uid = a.merchant_uid
	  JOIN products product ON product.product_uid = l.product_uid
	  LEFT JOIN disbursements pending
	         ON pending.application_uid = l.application_uid
	        AND pending.status IN ('FUNDING_REQUESTED', 'FUNDING_PROCESSING')
	  LEFT JOIN LATERAL (
	       SELECT s.stage, s.scheduled_amount, s.stage = s.last AS is_last
	         FROM (SELECT stage, scheduled_amount, max(stage) OVER () AS last
	                 FROM loan_stages
	                WHERE application_uid = l.application_uid) AS s
	        WHERE l.drawn_amount < l.loan_amount
	          AND (s.scheduled_amount > 0 OR s.stage = s.last)
	          AND NOT EXISTS (SELECT 1 FROM disbursements d
	                           WHERE d.application_uid = l.application_uid
	                             AND d.stage = s.stage
	                             AND d.status NOT IN ('CANCELLED', 'RETURNED'))
	        ORDER BY s.stage
	        LIMIT 1) AS next ON true`

// List returns one page of the matching loans, the newest opened first, and the cursor of the
// next page. Error: VALIDATION_ERROR for the limit.
func (s *Service) List(
	ctx context.Context, filter ListFilter, page postgres.Paging,
) ([]Summary, postgres.Cursor, error) {
	rows, next, err := postgres.List[Summary]{
		What: "loans", Select: selectLoans, At: `l.opened_at`, UID: `l.application_uid`,
		Place: func(l Summary) postgres.Cursor {
			return postgres.Cursor{At: l.OpenedAt, UID: l.UID}
		},
	}.Page(ctx, s.DB, filter.conditions(), page)
	for i := range rows {
		rows[i].setNextAmount()
	}
	return rows, next, err
}

// Count counts the loans that match, at most limit of them.
func (s *Service) Count(ctx context.Context, filter ListFilter, limit int) (int, error) {
	c := filter.conditions()
	return s.DB.CountUpTo(ctx, limit, "loans",
		`FROM loans l JOIN applications a USING (application_uid)`+c.Where()+
			` ORDER BY l.opened_at DESC, l.application_uid DESC`, c.Args)
}

// conditions returns the filter's conditions on loans l and applications a.
func (f ListFilter) conditions() postgres.Conditions {
	var c postgres.Conditions
	switch f.State {
	case ListPending:
		c.Add(isPending)
	case ListCompleted:
		c.Add(isCompleted + ` AND NOT ` + isPending)
	case ListBlocked:
		c.Add(`a.status <> 'Approved' AND NOT ` + isPending + ` AND NOT ` + isCompleted)
	case ListReady:
		c.Add(`a.status = 'Approved' AND NOT ` + isPending + ` AND NOT ` + isCompleted)
	}
	c.When(f.PartnerUID != uuid.Nil, `a.partner_uid = ?`, f.PartnerUID)
	c.When(f.ProductUID != uuid.Nil, `l.product_uid = ?`, f.ProductUID)
	if f.Draw != "" {
		// The state is a literal, so that the planner sees how rare it is.
		c.Add(`EXISTS (SELECT 1 FROM disbursements d
		        WHERE d.application_uid = l.application_uid
		          AND d.status = ` + pq.QuoteLiteral(string(f.Draw)) + `)`)
	}
	if f.Draw.IsPending() && f.State != "" && f.State != ListPending {
		c.Add(`false`) // a loan with a draw under way is pending and nothing else
	}
	return c
}
