package loan

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// DeskFilter narrows the list of draws; zero fields do not narrow it.
type DeskFilter struct {
	// Status selects draws in that state; empty selects those whose money is under way.
	Status      lending.FundingStatus
	PartnerUID  uuid.UUID
	MerchantUID uuid.UUID
	ProductUID  uuid.UUID
	// Since (inclusive) and Until (exclusive) bound the time at which a draw was requested.
	Since, Until time.Time
	// Age selects draws under way that have been in their state for at least this business time.
	Age time.Duration
	// Overdue selects draws that have been in their state for longer than their product allows.
	Overdue bool
}

// Waiting is a draw in the list of the people who pay draws out.
type Waiting struct {
	Disbursement
	Application  lending.ApplicationStatus
	Borrower     string
	PartnerName  string
	MerchantName string
	ProductCode  string
	// Since is when the draw reached its state. Due is when it becomes, or became, overdue there;
	// it is zero unless the money is under way.
	Since, Due time.Time
	// Age is the business time in that state, zero for a state in which nothing is awaited.
	Age     time.Duration
	Overdue bool
	// NextStep says who must do what.
	NextStep string
}

// waitingRow is a draw on the desk as it is stored.
type waitingRow struct {
	drawRow
	FirstName    string `db:"borrower_first_name"`
	LastName     string `db:"borrower_last_name"`
	PartnerName  string `db:"partner_name"`
	MerchantName string `db:"merchant_name"`
	ProductCode  string `db:"code"`
	OverdueHours int    `db:"overdue_hours"`
}

const (
	deskTables = `
	  FROM disbursements d
	  JOIN applications a USING (application_uid)
	  JOIN loans l USING (application_uid)
	  JOIN products product ON product.product_uid = l.product_uid`
	// inState is the time at which a pending draw reached its state.
	inState = `coalesce(d.processing_at, d.requested_at)`
)

// Desk returns one page of the matching draws, the oldest request first, and the cursor of the
// next page, zero on the last one. Error: VALIDATION_ERROR for the limit.
func (s *Service) Desk(
	ctx context.Context, filter DeskFilter, page postgres.Paging,
) ([]Waiting, postgres.Cursor, error) {
	if err := page.Check(); err != nil {
		return nil, postgres.Cursor{}, err
	}
	now := s.DB.Now()
	c, err := s.deskConditions(ctx, filter, now)
	if err != nil {
		return nil, postgres.Cursor{}, err
	}
	requestedAfter(&c, page.From)
	var rows []waitingRow
	err = s.DB.SelectContext(ctx, &rows, `
		SELECT d.stage,`+drawColumns+`,
		       a.borrower_first_name,
		       a.borrower_last_name,
		       p.name AS partner_name,
		       m.name AS merchant_name,
		       product.code,
		       product.overdue_hours`+deskTables+`
		  JOIN partners p ON p.partner_uid = a.partner_uid
		  JOIN merchants m ON m.merchant_uid = a.merchant_uid`+c.Where()+`
		 ORDER BY d.requested_at, d.merchant_disbursement_id
		 LIMIT `+c.Bind(page.Limit+1), c.Args...)
	if err != nil {
		return nil, postgres.Cursor{}, fmt.Errorf("listing draws: %w", err)
	}
	draws := make([]Waiting, 0, len(rows))
	for _, row := range rows {
		draws = append(draws, s.waiting(row, now))
	}
	draws, next := postgres.Page(draws, page.Limit,
		func(w Waiting) postgres.Cursor { return w.place() })
	return draws, next, nil
}

// CountDesk counts the draws that match, at most limit of them.
func (s *Service) CountDesk(ctx context.Context, filter DeskFilter, limit int) (int, error) {
	c, err := s.deskConditions(ctx, filter, s.DB.Now())
	if err != nil {
		return 0, err
	}
	return s.DB.CountUpTo(ctx, limit, "draws", deskTables+c.Where(), c.Args)
}

func (s *Service) deskConditions(
	ctx context.Context, filter DeskFilter, now time.Time,
) (postgres.Conditions, error) {
	var c postgres.Conditions
	c.When(filter.Status != "", `d.status = ?`, string(filter.Status))
	// The states are literals, so that the planner can use the partial index on them.
	c.When(filter.Status == "" || filter.Age > 0 || filter.Overdue,
		`d.status IN ('FUNDING_REQUESTED', 'FUNDING_PROCESSING')`)
	c.When(filter.PartnerUID != uuid.Nil, `a.partner_uid = ?`, filter.PartnerUID)
	c.When(filter.MerchantUID != uuid.Nil, `a.merchant_uid = ?`, filter.MerchantUID)
	c.When(filter.ProductUID != uuid.Nil, `l.product_uid = ?`, filter.ProductUID)
	c.When(!filter.Since.IsZero(), `d.requested_at >= ?`, filter.Since)
	c.When(!filter.Until.IsZero(), `d.requested_at < ?`, filter.Until)
	c.When(filter.Age > 0, inState+` <= ?`, s.Calendar.Ago(now, filter.Age))
	if !filter.Overdue {
		return c, nil
	}
	// Products share a few overdue periods; each gives one point in time.
	var bounds []int
	err := s.DB.SelectContext(ctx, &bounds, `SELECT DISTINCT overdue_hours FROM products`)
	if err != nil {
		return c, fmt.Errorf("reading when draws are overdue: %w", err)
	}
	late, args := []string{"false"}, []any{}
	for _, hours := range bounds {
		late = append(late, `product.overdue_hours = ? AND `+inState+` <= ?`)
		args = append(args, hours, s.Calendar.Ago(now, time.Duration(hours)*time.Hour))
	}
	c.Add(`(`+strings.Join(late, ` OR `)+`)`, args...)
	return c, nil
}

func (s *Service) waiting(row waitingRow, now time.Time) Waiting {
	w := Waiting{
		Disbursement: row.disbursement(), Application: row.Application,
		Borrower:    strings.TrimSpace(row.FirstName + " " + row.LastName),
		PartnerName: row.PartnerName, MerchantName: row.MerchantName, ProductCode: row.ProductCode,
	}
	if !w.Status.IsPending() {
		w.Since, w.NextStep = *cmp.Or(w.ReturnedAt, w.CancelledAt, w.SettledAt), "None."
		return w
	}
	w.Since = *cmp.Or(row.Processing, &row.RequestedAt)
	w.Age = s.Calendar.Between(w.Since, now)
	w.Due = s.Calendar.Add(w.Since, time.Duration(row.OverdueHours)*time.Hour)
	w.Overdue = !w.Due.After(now)
	step := "Wait for the bank: mark it as settled once the money has arrived, or as cancelled " +
		"if it never left."
	if w.Status == lending.FundingRequested {
		cutoff := s.Calendar.NextCutoff(now)
		day := "today"
		if local := now.In(cutoff.Location()); local.YearDay() != cutoff.YearDay() ||
			local.Year() != cutoff.Year() {
			day = cutoff.Format("on Monday, 2 January")
		}
		step = "Fund it: order the transfer, then mark it as processing. The cut-off is " + day +
			cutoff.Format(" at 15:04 MST.")
	}
	if w.Application != lending.StatusApproved {
		step = "Its application is " + string(w.Application) +
			": find out whether it may be paid. " + step
	}
	if w.Overdue {
		step = "Overdue since " + w.Due.Format("2006-01-02 15:04 MST") + ". " + step
	}
	w.NextStep = step
	return w
}
