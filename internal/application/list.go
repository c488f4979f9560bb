package application

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// maxSearch bounds the text of a search, in bytes; no value that it could match is longer.
const maxSearch = 320

// Filter narrows a list of applications; zero fields do not narrow it.
type Filter struct {
	Status      lending.ApplicationStatus
	PartnerUID  uuid.UUID
	MerchantUID uuid.UUID
	// Since (inclusive) and Until (exclusive) bound the time of creation.
	Since, Until time.Time
	// Search is an application's uid, its external reference, the borrower's e-mail address in any
	// case, or the number of one of its disbursements. It must match as a whole.
	Search string
}

// Summary is an application in a list.
type Summary struct {
	UID             uuid.UUID                 `db:"application_uid"`
	MerchantUID     uuid.UUID                 `db:"merchant_uid"`
	MerchantName    string                    `db:"merchant_name"`
	PartnerUID      uuid.UUID                 `db:"partner_uid"`
	PartnerName     string                    `db:"partner_name"`
	Status          lending.ApplicationStatus `db:"status"`
	Reference       *string                   `db:"external_reference"`
	FirstName       string                    `db:"borrower_first_name"`
	LastName        string                    `db:"borrower_last_name"`
	Email           string                    `db:"borrower_email"`
	RequestedAmount lending.Money             `db:"requested_amount"`
	// LoanAmount and Drawn are nil while there is no loan.
	LoanAmount *lending.Money `db:"loan_amount"`
	Drawn      *lending.Money `db:"drawn_amount"`
	CreatedAt  time.Time      `db:"created_at"`
}

// Borrower is the borrower's name.
func (s Summary) Borrower() string { return strings.TrimSpace(s.FirstName + " " + s.LastName) }

// Name is the display name of an application: its borrower, or else their e-mail address.
func (s Summary) Name() string { return cmp.Or(s.Borrower(), s.Email) }

// newestFirst is the order of the list.
const newestFirst = ` ORDER BY a.created_at DESC, a.application_uid DESC`

const summarySelect = `
	SELECT a.application_uid,
	       a.merchant_uid,
	       m.name AS merchant_name,
	       a.partner_uid,
	       p.name AS partner_name,
	       a.status,
	       a.external_reference,
	       a.borrower_first_name,
	       a.borrower_last_name,
	       a.borrower_email,
	       a.requested_amount,
	       l.loan_amount,
	       l.drawn_amount,
	       a.created_at
	  FROM applications a
	  JOIN merchants m ON m.merchant_uid = a.merchant_uid
	  JOIN partners p ON p.partner_uid = a.partner_uid
	  LEFT JOIN loans l ON l.application_uid = a.application_uid`

// List returns one page of the matching applications, newest first, and the cursor of the next.
// Error: VALIDATION_ERROR for the limit and for a search that is too long or not text.
func (s *Service) List(
	ctx context.Context, filter Filter, page postgres.Paging,
) ([]Summary, postgres.Cursor, error) {
	if err := page.Check(); err != nil {
		return nil, postgres.Cursor{}, err
	}
	if err := CheckSearch(filter.Search); err != nil {
		return nil, postgres.Cursor{}, err
	}
	query, args := filter.query(page)
	var rows []Summary
	if err := s.DB.SelectContext(ctx, &rows, query, args...); err != nil {
		return nil, postgres.Cursor{}, fmt.Errorf("listing applications: %w", err)
	}
	rows, next := postgres.Page(rows, page.Limit, Summary.place)
	return rows, next, nil
}

// CheckSearch returns VALIDATION_ERROR for a search that cannot match anything because it is too
// long or not text.
func CheckSearch(text string) error {
	if len(text) > maxSearch {
		return lending.Invalid("search", `"search" must be at most %d bytes long`, maxSearch)
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return lending.Invalid("search", `"search" must be text in UTF-8 without NUL`)
	}
	return nil
}

// Count counts the applications that match, at most limit of them.
func (s *Service) Count(ctx context.Context, filter Filter, limit int) (int, error) {
	if err := CheckSearch(filter.Search); err != nil {
		return 0, err
	}
	c := filter.conditions()
	return s.DB.CountUpTo(ctx, limit, "applications",
		`FROM applications a`+c.Where()+newestFirst, c.Args)
}

// Summary returns one application as lists show it. Error: NOT_FOUND.
func (s *Service) Summary(ctx context.Context, uid uuid.UUID) (Summary, error) {
	var found Summary
	err := s.DB.GetContext(ctx, &found, summarySelect+` WHERE a.application_uid = $1`, uid)
	return found, postgres.RowError(err,
		lending.NewError(lending.CodeNotFound, "no application has the id %s", uid),
		"loading application %s", uid)
}

func (s Summary) place() postgres.Cursor { return postgres.Cursor{At: s.CreatedAt, UID: s.UID} }

// query renders the statement of a page, with one row more than the limit.
func (f Filter) query(page postgres.Paging) (string, []any) {
	c := f.conditions()
	c.OlderThan(page.From, `a.created_at`, `a.application_uid`)
	return summarySelect + c.Where() + newestFirst + ` LIMIT ` + c.Bind(page.Limit+1), c.Args
}

// conditions returns the filter's conditions on applications a.
func (f Filter) conditions() postgres.Conditions {
	var c postgres.Conditions
	c.When(f.Status != "", `a.status = ?`, string(f.Status))
	c.When(f.PartnerUID != uuid.Nil, `a.partner_uid = ?`, f.PartnerUID)
	c.When(f.MerchantUID != uuid.Nil, `a.merchant_uid = ?`, f.MerchantUID)
	c.When(!f.Since.IsZero(), `a.created_at >= ?`, f.Since)
	c.When(!f.Until.IsZero(), `a.created_at < ?`, f.Until)
	if f.Search != "" {
		condition, values := f.search()
		c.Add(condition, values...)
	}
	return c
}

// search renders each possible meaning of the search as a query that has its own index.
func (f Filter) search() (string, []any) {
	readings := []string{
		`SELECT application_uid FROM applications WHERE external_reference = ?`,
		`SELECT application_uid FROM applications WHERE lower(borrower_email) = lower(?)`,
	}
	values := []any{f.Search, f.Search}
	if uid, err := uuid.Parse(f.Search); err == nil {
		readings = append(readings, `SELECT ?::uuid`)
		values = append(values, uid)
	}
	if number, err := strconv.ParseInt(f.Search, 10, 64); err == nil {
		readings = append(readings,
			`SELECT application_uid FROM disbursements WHERE merchant_disbursement_id = ?`)
		values = append(values, number)
	}
	return `a.application_uid IN (` + strings.Join(readings, ` UNION ALL `) + `)`, values
}

// TaskEntry is a task with its times.
type TaskEntry struct {
	Task

	CreatedAt time.Time `db:"created_at"`
	// UpdatedAt is when the task got its status.
	UpdatedAt time.Time `db:"updated_at"`
}

// Tasks returns the tasks of an application, oldest first.
func (s *Service) Tasks(ctx context.Context, uid uuid.UUID) ([]TaskEntry, error) {
	tasks, err := tasksOf(ctx, s.DB, []uuid.UUID{uid})
	return tasks[uid], err
}

// tasksOf returns the tasks of each of the applications, oldest first.
func tasksOf(
	ctx context.Context, db postgres.Querier, uids []uuid.UUID,
) (map[uuid.UUID][]TaskEntry, error) {
	var rows []TaskEntry
	err := db.SelectContext(ctx, &rows, `
		SELECT task_uid,
		       application_uid,
		       title,
		       status,
		       created_at,
		       updated_at
		  FROM tasks
		 WHERE application_uid = ANY ($1)
		 ORDER BY created_at,
		          task_uid`, pq.Array(uids))
	if err != nil {
		return nil, fmt.Errorf("listing the tasks of applications %s: %w", uids, err)
	}
	tasks := map[uuid.UUID][]TaskEntry{}
	for _, task := range rows {
		tasks[task.ApplicationUID] = append(tasks[task.ApplicationUID], task)
	}
	return tasks, nil
}
