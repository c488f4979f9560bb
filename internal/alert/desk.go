package alert

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lib/pq"

	"drawbridge/internal/calendar"
	"drawbridge/internal/email"
	"drawbridge/internal/postgres"
)

// LateDraw is a draw that has been in its state for longer than its product allows.
type LateDraw struct {
	ID int64
	// Due is when it became overdue.
	Due time.Time
}

func (d LateDraw) byDue(other LateDraw) int { return d.Due.Compare(other.Due) }

// listedDraws is how many draws an alert names.
const listedDraws = 10

// deskBatch bounds the items that one transaction opens. One mail reports all of them, so that a
// run that finds hundreds of days at once, as after an import, does not send hundreds of mails.
const deskBatch = 100

// watchDraws looks for draws whose money nobody moves on. Those that became overdue on one
// business day share an item and a mail; draws overdue after a person closed it open another.
func (s *Service) watchDraws(ctx context.Context) error {
	draws, err := s.OverdueDraws(ctx)
	if err != nil {
		return err
	}
	days := map[calendar.Date][]LateDraw{}
	for _, draw := range draws {
		day := s.Calendar.DayOf(draw.Due)
		days[day] = append(days[day], draw)
	}
	var found []deskFinding
	for day, draws := range days {
		var names []string
		for _, draw := range draws[:min(len(draws), listedDraws)] {
			names = append(names, "#"+strconv.FormatInt(draw.ID, 10))
		}
		found = append(found, deskFinding{
			finding: finding{
				subject: day.String(), severity: Problem, count: len(draws),
				since: slices.MinFunc(draws, LateDraw.byDue).Due,
				detail: "In one state for longer than their products allow: " +
					listed(names, len(draws)) + ". The draw desk says what to do about each.",
			},
			newest: slices.MaxFunc(draws, LateDraw.byDue).Due, day: day.String(), names: names,
		})
	}
	// A fixed order in every process and run, since two may open the same items.
	slices.SortFunc(found, func(a, b deskFinding) int { return strings.Compare(a.day, b.day) })
	return s.keepDesk(ctx, KindDrawOverdue, email.KindDrawsOverdue, found,
		"The money of every draw has moved on.")
}

// listed joins the first names of count draws.
func listed(names []string, count int) string {
	text := strings.Join(names[:min(len(names), listedDraws)], ", ")
	if more := count - listedDraws; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// The days after which an application without a decision is reported, at first and as urgent,
// and within which the law requires notice to the applicant: 12 CFR 1002.9(a)(1)(i).
const (
	undecidedDays = 20
	urgentDays    = 28
	noticeDays    = 30
)

// watchDecisions looks for applications that wait for a decision. An application is complete
// from its creation, because it cannot be created otherwise; one whose loan is open counts as
// decided. Those of one day share one item, and a second one once the time is nearly over.
func (s *Service) watchDecisions(ctx context.Context) error {
	var days []struct {
		Due   time.Time `db:"due"`
		First time.Time `db:"first"`
		Last  time.Time `db:"last"`
		// Urgent is when the newest of the urgent applications was created.
		Urgent *time.Time `db:"urgent"`
		Count  int        `db:"count"`
	}
	zone, now := s.Calendar.Zone, s.DB.Now()
	if zone == nil {
		zone = time.UTC
	}
	err := s.DB.SelectContext(ctx, &days, `
		SELECT (created_at AT TIME ZONE $1)::date + $2::int AS due,
		       min(created_at) AS first,
		       max(created_at) AS last,
		       max(created_at) FILTER (WHERE created_at <= $4) AS urgent,
		       count(*)
		  FROM applications a
		 WHERE status IN ('Pending Review', 'Hard Pull Authorization', 'Hard Pull',
		                  'Pend Clearance')
		   AND created_at <= $3
		   AND NOT EXISTS (SELECT FROM loans l WHERE l.application_uid = a.application_uid)
		 GROUP BY due
		 ORDER BY due`, zone.String(), noticeDays, now.AddDate(0, 0, -undecidedDays),
		now.AddDate(0, 0, -urgentDays))
	if err != nil {
		return fmt.Errorf("looking for applications without a decision: %w", err)
	}
	found := make([]deskFinding, 0, len(days))
	for _, day := range days {
		due := day.Due.Format(time.DateOnly)
		one := deskFinding{
			finding: finding{
				subject: due, severity: Warning, count: day.Count,
				since: day.First.AddDate(0, 0, undecidedDays),
				detail: "Complete and not decided. Regulation B wants the applicants to have notice by " +
					due + ".",
			},
			newest: day.Last.AddDate(0, 0, undecidedDays), day: due,
		}
		if day.Urgent != nil {
			one.subject += ", urgent"
			one.severity, one.since = Problem, day.First.AddDate(0, 0, urgentDays)
			one.newest = day.Urgent.AddDate(0, 0, urgentDays)
		}
		found = append(found, one)
	}
	return s.keepDesk(ctx, KindUndecided, email.KindUndecided, found,
		"They are decided, or told of once more because the time is nearly over.")
}

// deskFinding is a finding about the lender's own work, with the parameters of its mail.
type deskFinding struct {
	finding
	// newest is when the last thing that it counts was added.
	newest time.Time
	day    string
	// names are those of the draws, or of the first ones if there are many.
	names []string
}

// keepDesk closes items whose cause is gone, opens items for the findings, and mails about new
// ones. Each batch commits with its mails, so a run that is cut short is continued by the next.
func (s *Service) keepDesk(
	ctx context.Context, kind Kind, mail email.Kind, found []deskFinding, gone string,
) error {
	err := s.DB.InTx(ctx, func(tx *postgres.Tx) error {
		_, err := tx.ExecContext(ctx, `
			UPDATE attention_items
			   SET closed_at = $3,
			       closed_by = 'system',
			       note = $4
			 WHERE kind = $1
			   AND subject <> ALL ($2)
			   AND closed_at IS NULL`,
			string(kind), pq.Array(subjectsOf(found)), tx.Now, gone)
		return err
	})
	if err != nil {
		return fmt.Errorf("closing what is done of %s: %w", kind, err)
	}
	for batch := range slices.Chunk(found, deskBatch) {
		err := s.DB.InTx(ctx, func(tx *postgres.Tx) error {
			opened, err := openDesk(ctx, tx, kind, batch)
			if err != nil || len(opened) == 0 {
				return err
			}
			return s.Emails.ScheduleAlert(ctx, tx, mail, mailOf(opened))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func subjectsOf(found []deskFinding) []string {
	subjects := make([]string, 0, len(found))
	for _, one := range found {
		subjects = append(subjects, one.subject)
	}
	return subjects
}

// openDesk opens or updates items and returns the new ones. An item that a person closed stays
// closed until something is added to it: its count grows, or it has something newer. If the
// addition is then done before the rest, the item is settled again.
func openDesk(
	ctx context.Context, tx *postgres.Tx, kind Kind, found []deskFinding,
) ([]deskFinding, error) {
	type closedItem struct {
		Subject string    `db:"subject"`
		At      time.Time `db:"closed_at"`
		Count   int       `db:"count"`
	}
	var closed []closedItem
	err := tx.SelectContext(ctx, &closed, `
		SELECT DISTINCT ON (subject) subject, closed_at, count
		  FROM attention_items
		 WHERE kind = $1 AND subject = ANY ($2) AND closed_by NOT IN ('', 'system')
		 ORDER BY subject, closed_at DESC`,
		string(kind), pq.Array(subjectsOf(found)))
	if err != nil {
		return nil, fmt.Errorf("reading what was closed of %s: %w", kind, err)
	}
	done := make(map[string]closedItem, len(closed))
	for _, item := range closed {
		done[item.Subject] = item
	}
	var fresh []deskFinding
	for _, one := range found {
		last, known := done[one.subject]
		if known && !one.newest.After(last.At) && one.count <= last.Count {
			err := settle(ctx, tx, kind, one.subject, "What was added to it is done.")
			if err != nil {
				return nil, err
			}
			continue
		}
		one.kind = kind
		opened, err := raise(ctx, tx, one.finding)
		if err != nil {
			return nil, err
		}
		if opened {
			fresh = append(fresh, one)
		}
	}
	return fresh, nil
}

// mailOf returns the parameters of the mail about new items.
func mailOf(opened []deskFinding) map[string]string {
	var days, names []string
	count := 0
	for _, one := range opened {
		count += one.count
		days = append(days, one.day)
		names = append(names, one.names...)
	}
	facts := map[string]string{
		email.ParamCount: strconv.Itoa(count), email.ParamDay: strings.Join(days, ", "),
	}
	if len(names) > 0 {
		facts[email.ParamDraws] = listed(names, count)
	}
	return facts
}
