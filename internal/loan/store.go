package loan

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// account holds the values of an application on which its loan depends.
type account struct {
	UID         uuid.UUID                 `db:"application_uid"`
	MerchantUID uuid.UUID                 `db:"merchant_uid"`
	Status      lending.ApplicationStatus `db:"status"`
}

// locked makes load take the lock of the application.
const locked = `FOR NO KEY UPDATE`

// load loads an application with its loan, nil if it has none. A merchant reaches only its own;
// for any other the error is NOT_FOUND. A separate statement reads the loan after the lock is
// taken, so that it sees what the lock's previous holder wrote.
func load(
	ctx context.Context, db postgres.Querier, caller Caller, uid uuid.UUID, locking string,
) (app account, loan *Loan, err error) {
	err = db.GetContext(ctx, &app, `
		SELECT application_uid,
		       merchant_uid,
		       status
		  FROM applications
		 WHERE application_uid = $1
		   AND ($2 = '00000000-0000-0000-0000-000000000000'::uuid OR merchant_uid = $2)
		`+locking, uid, caller.MerchantUID)
	err = postgres.RowError(err, lending.NewError(lending.CodeNotFound, "no loan has the id %s", uid),
		"loading application %s", uid)
	if err != nil {
		return account{}, nil, err
	}
	loan, err = find(ctx, db, uid)
	return app, loan, err
}

// loanRow is a stage with its loan and one of its disbursements, if any. One statement loads all
// three, so that they are consistent even when no lock is held.
type loanRow struct {
	drawRow
	ProductUID  uuid.UUID       `db:"product_uid"`
	ProductCode string          `db:"code"`
	Original    lending.Money   `db:"original_amount"`
	FeePercent  lending.Percent `db:"merchant_fee_percentage"`
	Percent     lending.Percent `db:"percentage"`
	Scheduled   lending.Money   `db:"scheduled_amount"`
}

// drawRow is a disbursement; its id is 0 for a stage that has no draw.
type drawRow struct {
	Disbursement
	Application lending.ApplicationStatus `db:"application_status"`
	Processing  *time.Time                `db:"processing_at"`
	Steps       changeList                `db:"changes"`
}

// drawColumns are the columns of a disbursement d of an application a, except its stage.
const drawColumns = `
	a.application_uid,
	a.merchant_uid,
	a.status AS application_status,
	coalesce(d.merchant_disbursement_id, 0) AS merchant_disbursement_id,
	coalesce(d.disbursement_number, 0) AS disbursement_number,
	coalesce(d.kind, '') AS kind,
	coalesce(d.status, '') AS status,
	coalesce(d.gross_amount, 0) AS gross_amount,
	coalesce(d.fee_amount, 0) AS fee_amount,
	coalesce(d.net_amount, 0) AS net_amount,
	d.updated_loan_amount,
	coalesce(d.requested_at, 'epoch') AS requested_at,
	d.processing_at,
	d.settled_at,
	d.cancelled_at,
	d.returned_at,
	` + selectChanges + ` AS changes`

// find loads the loan of an application, nil if it has none.
func find(ctx context.Context, db postgres.Querier, uid uuid.UUID) (*Loan, error) {
	loans, err := findAll(ctx, db, []uuid.UUID{uid})
	return loans[uid], err
}

// findAll loads the loans of those applications that have one.
func findAll(
	ctx context.Context, db postgres.Querier, uids []uuid.UUID,
) (map[uuid.UUID]*Loan, error) {
	among, wanted := postgres.Among(uids)
	var rows []loanRow
	err := db.SelectContext(ctx, &rows, `
		SELECT l.product_uid,
		       p.code,
		       l.original_amount,
		       o.merchant_fee_percentage,
		       s.stage,
		       s.percentage,
		       s.scheduled_amount,`+drawColumns+`
		  FROM loans l
		  JOIN applications a USING (application_uid)
		  JOIN products p USING (product_uid)
		  JOIN offers o USING (application_uid, product_uid)
		  JOIN loan_stages s USING (application_uid)
		  LEFT JOIN disbursements d USING (application_uid, stage)
		 WHERE l.application_uid`+among+`
		 ORDER BY l.application_uid, s.stage`, wanted)
	if err != nil {
		return nil, fmt.Errorf("loading loans %s: %w", uids, err)
	}
	loans := make(map[uuid.UUID]*Loan, len(uids))
	for len(rows) > 0 {
		uid := rows[0].ApplicationUID
		count := slices.IndexFunc(rows, func(row loanRow) bool { return row.ApplicationUID != uid })
		if count < 0 {
			count = len(rows)
		}
		loans[uid], rows = assemble(rows[:count]), rows[count:]
	}
	return loans, nil
}

// assemble builds a loan from its rows, which are ordered by stage.
func assemble(rows []loanRow) *Loan {
	first := rows[0]
	loan := &Loan{
		Loan: lending.Loan{
			OriginalAmount: first.Original,
			FeePercent:     first.FeePercent,
		},
		ApplicationUID: first.ApplicationUID,
		MerchantUID:    first.MerchantUID,
		Status:         first.Application,
		ProductUID:     first.ProductUID,
		ProductCode:    first.ProductCode,
	}
	for _, row := range rows {
		if row.Stage > len(loan.Stages) {
			loan.Stages = append(loan.Stages, lending.Stage{
				Number: row.Stage, Percent: row.Percent, Scheduled: row.Scheduled,
			})
		}
		if row.ID != 0 {
			loan.History = append(loan.History, row.disbursement())
		}
	}
	slices.SortFunc(loan.History, func(a, b Disbursement) int { return a.Number - b.Number })
	for _, disbursement := range loan.History {
		loan.Disbursements = append(loan.Disbursements, disbursement.Disbursement)
	}
	return loan
}

func (r drawRow) disbursement() Disbursement {
	r.Changes = r.Steps.with(lending.FundingProcessing, r.Processing).
		with(lending.FundingSettled, r.SettledAt).
		with(lending.FundingCancelled, r.CancelledAt).
		with(lending.FundingReturned, r.ReturnedAt)
	return r.Disbursement
}

// disbursements converts the rows, in their order.
func disbursements(rows []drawRow) []Disbursement {
	draws := make([]Disbursement, 0, len(rows))
	for _, row := range rows {
		draws = append(draws, row.disbursement())
	}
	return draws
}

// grant is the input of insertDisbursement.
type grant struct {
	app         account
	loan        lending.Loan
	draw        lending.Draw
	certificate uuid.NullUUID
	by          string
}

// insertDisbursement writes a granted draw and updates the loan's totals, on which database
// checks refuse any overdraft.
func insertDisbursement(ctx context.Context, tx *postgres.Tx, g grant) (Disbursement, error) {
	after := g.loan.WithDraw(0, g.draw)
	made := after.Disbursements[len(after.Disbursements)-1]
	err := tx.GetContext(ctx, &made.ID, `
		WITH loan AS (
			UPDATE loans
			   SET loan_amount = $2,
			       drawn_amount = $3,
			       updated_at = $4
			 WHERE application_uid = $1
		)
		INSERT INTO disbursements (application_uid, disbursement_number, stage, kind, status,
		                           gross_amount, fee_amount, net_amount, fee_percentage,
		                           updated_loan_amount, loan_amount_before, certificate_uid,
		                           requested_by, requested_at)
		VALUES ($1, $5, $6, $7, $8, $9, $10, $11, $12, $13,
		        -- For the previous release, which takes a revised amount back by this one.
		        CASE WHEN $13::numeric IS NOT NULL
		             THEN (SELECT loan_amount FROM loans WHERE application_uid = $1) END,
		        $14, $15, $4)
		RETURNING merchant_disbursement_id`,
		g.app.UID, after.Amount(), after.Drawn(), tx.Now, made.Number, made.Stage,
		string(made.Kind), string(made.Status), made.Gross, made.Fee, made.Net,
		g.loan.FeePercent, made.UpdatedLoanAmount, g.certificate, g.by)
	if err != nil {
		return Disbursement{}, fmt.Errorf("inserting disbursement %d of loan %s: %w",
			made.Number, g.app.UID, err)
	}
	return Disbursement{
		Disbursement:   made,
		ApplicationUID: g.app.UID,
		MerchantUID:    g.app.MerchantUID,
		RequestedAt:    tx.Now,
	}, nil
}

// update writes the totals and stages of changed loans.
func update(ctx context.Context, tx *postgres.Tx, loans ...*Loan) error {
	if len(loans) == 0 {
		return nil
	}
	var (
		uids, owners             []uuid.UUID
		originals, amounts, sums []lending.Money
		stages                   stageColumns
	)
	for _, loan := range loans {
		uids = append(uids, loan.ApplicationUID)
		originals = append(originals, loan.OriginalAmount)
		amounts = append(amounts, loan.Amount())
		sums = append(sums, loan.Drawn())
		for range loan.Stages {
			owners = append(owners, loan.ApplicationUID)
		}
		stages.add(loan.Stages)
	}
	_, err := tx.ExecContext(ctx, `
		WITH loan AS (
			UPDATE loans l
			   SET original_amount = new.original,
			       loan_amount = new.amount,
			       drawn_amount = new.drawn,
			       updated_at = $5
			  FROM unnest($1::uuid[], $2::numeric[], $3::numeric[], $4::numeric[])
			       AS new (uid, original, amount, drawn)
			 WHERE l.application_uid = new.uid
		)
		UPDATE loan_stages s
		   SET scheduled_amount = new.amount
		  FROM unnest($6::uuid[], $7::integer[], $8::numeric[]) AS new (uid, stage, amount)
		 WHERE s.application_uid = new.uid
		   AND s.stage = new.stage`,
		pq.Array(uids), pq.Array(originals), pq.Array(amounts), pq.Array(sums), tx.Now,
		pq.Array(owners), stages.numbers, stages.amounts)
	if err != nil {
		return fmt.Errorf("updating loans %s: %w", uids, err)
	}
	return nil
}

// stageColumns are stages as array parameters, one entry per stage.
type stageColumns struct {
	numbers              pq.Int64Array
	percentages, amounts pq.StringArray
}

func (c *stageColumns) add(stages []lending.Stage) {
	for _, stage := range stages {
		c.numbers = append(c.numbers, int64(stage.Number))
		c.percentages = append(c.percentages, stage.Percent.String())
		c.amounts = append(c.amounts, stage.Scheduled.String())
	}
}

func errNoDisbursement(id int64) error {
	return lending.NewError(lending.CodeNotFound, "no disbursement has the id %d", id)
}
