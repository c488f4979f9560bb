package application

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// EntryKind classifies the entries of a timeline by subject.
type EntryKind string

// The kinds of entries. The first five are about the application itself and include its events;
// the others show what led to the events and what followed.
const (
	EntryStatus   EntryKind = "status"   // created, status changed
	EntryOffer    EntryKind = "offer"    // amount or terms changed
	EntryDocument EntryKind = "document" // loan documents, completion certificates
	EntryFunding  EntryKind = "funding"  // draws and what became of them
	EntryTask     EntryKind = "task"
	EntryCall     EntryKind = "call" // the partner's API requests
	EntryEmail    EntryKind = "email"
	EntryOperator EntryKind = "operator" // an operator's action, from the audit log
)

// EntryKinds lists every kind once.
func EntryKinds() []EntryKind {
	return []EntryKind{
		EntryStatus, EntryOffer, EntryDocument, EntryFunding, EntryTask,
		EntryCall, EntryEmail, EntryOperator,
	}
}

// subjectLimit bounds how many of an application's deliveries, the newest first, have their
// audit entries looked up.
const subjectLimit = `2000`

// The names of entries, besides the event kinds of package lending.
const (
	NameCreated     = "application.created"
	NameCertificate = "certificate.stored"
	NameDraw        = "draw.requested"
	NameProcessing  = "draw.processing"
	NameSettled     = "draw.settled"
	NameCancelled   = "draw.cancelled"
	NameReturned    = "draw.returned"
)

// TimelineEntry is one thing that happened to an application.
type TimelineEntry struct {
	At   time.Time `db:"at"`
	Kind EntryKind `db:"kind"`
	// Rank orders entries with the same time: the cause before its effects.
	Rank int `db:"rank"`
	// ID is the uid of the event, certificate, mail or request, or the number of
	// the disbursement or the audit entry; unique among entries of one Name.
	ID string `db:"id"`
	// Name is the kind of an event or a mail, an operator's action, a request's method, or one of
	// the names above.
	Name string `db:"name"`
	// State is the status that an event carries, a mail's state, a draw's kind or a request's path.
	State string `db:"state"`
	// Party is who acted, or who received it: a mail's address, an operator or a client.
	Party string `db:"party"`
	// Text is a mail's subject or why it was not sent, an operator's reason or else the name of the
	// subject, a request's id, or the evidence of a draw's step.
	Text string `db:"text"`
	// Amount is the gross amount of a draw, nil for all other entries.
	Amount *lending.Money `db:"amount"`
	// Count is the number of attempts or of files.
	Count int `db:"count"`
	// HTTPStatus and ErrorClass describe the response to a request.
	HTTPStatus int    `db:"http_status"`
	ErrorClass string `db:"error_class"`
	// Again means that an operator re-sent the mail, or that the request got the response of an
	// earlier one.
	Again bool `db:"again"`
	// Body is the payload of an event.
	Body []byte `db:"body"`
	// DurationUS is how long a request took, in microseconds.
	DurationUS int64 `db:"duration_us"`
	// Note is a request's idempotency key.
	Note string `db:"note"`
}

// TimelineFilter narrows a timeline.
type TimelineFilter struct {
	// Kinds selects the kinds of entries; an empty list means all.
	Kinds []EntryKind
	// Before is where the page begins, zero for the newest; Limit is the number of entries, 1 to
	// postgres.MaxPage.
	Before EntryCursor
	Limit  int
}

// Timeline is a page of what happened to an application, newest first.
type Timeline struct {
	Entries []TimelineEntry
	// Next is the cursor of the following page, zero on the last one.
	Next EntryCursor
}

// timelineSources are the queries that a timeline is read from, all with the same columns. The
// rank orders the entries of one transaction: first the cause, then its event, then the effects.
var timelineSources = []struct {
	kinds []EntryKind
	query string
}{
	{[]EntryKind{EntryStatus}, `
		SELECT created_at, 1, 'status', application_uid::text, '` + NameCreated + `', source,
		       '', '', NULL::numeric, 0, 0, '', false, NULL::bytea, 0, ''
		  FROM applications
		 WHERE application_uid = $1`},
	{[]EntryKind{EntryDocument}, `
		SELECT c.created_at, 2, 'document', c.certificate_uid::text, '` + NameCertificate + `', '',
		       '', '', NULL::numeric, (SELECT count(*)::integer
		                        FROM certificate_files f
		                       WHERE f.certificate_uid = c.certificate_uid), 0, '', false,
		       NULL::bytea, 0, ''
		  FROM certificates c
		 WHERE c.application_uid = $1`},
	{[]EntryKind{EntryFunding}, `
		SELECT requested_at, 2, 'funding', merchant_disbursement_id::text, '` + NameDraw + `', kind,
		       requested_by, '', gross_amount, 0, 0, '', false, NULL::bytea, 0, ''
		  FROM disbursements
		 WHERE application_uid = $1`},
	// The times are the draw's own, since older steps have no evidence.
	{[]EntryKind{EntryFunding}, `
		SELECT step.at, 3, 'funding', d.merchant_disbursement_id::text, step.name, d.kind,
		       coalesce(c.changed_by, ''),
		       concat_ws(' · ', c.method, c.reference, 'effective ' || c.effective_date, c.reason),
		       d.gross_amount, 0, 0, '', false, NULL::bytea, 0, ''
		  FROM disbursements d
		 CROSS JOIN LATERAL (
		       VALUES ('` + NameProcessing + `', 'FUNDING_PROCESSING', d.processing_at),
		              ('` + NameSettled + `', 'FUNDING_SETTLED', d.settled_at),
		              ('` + NameCancelled + `', 'CANCELLED', d.cancelled_at),
		              ('` + NameReturned + `', 'RETURNED', d.returned_at)) AS step (name, status, at)
		  LEFT JOIN disbursement_changes c
		    ON c.merchant_disbursement_id = d.merchant_disbursement_id AND c.status = step.status
		 WHERE d.application_uid = $1
		   AND step.at IS NOT NULL`},
	{
		[]EntryKind{EntryStatus, EntryOffer, EntryDocument, EntryFunding, EntryTask},
		`SELECT * FROM (
			SELECT occurred_at, 4,
			       CASE split_part(kind, '.', 1) || '.' || split_part(kind, '.', 2)
			            WHEN 'application.status' THEN 'status'
			            WHEN 'application.amount' THEN 'offer'
			            WHEN 'application.offer' THEN 'offer'
			            WHEN 'disbursement.funding' THEN 'funding'
			            ELSE split_part(kind, '.', 1)
			       END AS entry_kind,
			       event_uid::text, kind, status, '', '', NULL::numeric, 0, 0, '', false, body, 0, ''
			  FROM events
			 WHERE application_uid = $1) AS recorded
		 WHERE entry_kind = ANY ($2)`,
	},
	{[]EntryKind{EntryCall}, `
		SELECT r.at, 0, 'call', r.request_uid::text, r.method, r.path,
		       coalesce(r.client_id, ''), r.request_id, NULL::numeric, 0, r.status,
		       coalesce(r.error_code, ''), r.replayed, NULL::bytea, r.duration_us,
		       coalesce(r.idempotency_key, '')
		  FROM api_requests r
		 WHERE r.application_uid = $1
		   AND r.merchant_uid = (SELECT merchant_uid FROM applications WHERE application_uid = $1)`},
	{[]EntryKind{EntryEmail}, `
		SELECT created_at, 6, 'email', email_uid::text, kind, state,
		       to_address, CASE WHEN reason = '' THEN subject ELSE reason END, NULL::numeric,
		       attempt_count, 0, '', resend_of IS NOT NULL, NULL::bytea, 0, ''
		  FROM emails
		 WHERE application_uid = $1`},
	{[]EntryKind{EntryOperator}, operatorEntries},
}

// operatorEntries reads the audit entries about an application and its parts. Each subject is
// looked up in the index on kind and subject.
const operatorEntries = `
	SELECT l.at, 8, 'operator', l.entry_id::text, l.action, l.subject_kind, l.actor,
	       CASE WHEN l.reason = '' THEN coalesce(l.after ->> 'name', '') ELSE l.reason END,
	       NULL::numeric, 0, 0, '', false, NULL::bytea, 0, ''
	  FROM (SELECT kind, $1::uuid::text AS subject
	          FROM unnest(ARRAY['application', 'loan']) AS kind
	         UNION ALL
	        SELECT 'disbursement', merchant_disbursement_id::text
	          FROM disbursements WHERE application_uid = $1
	         UNION ALL
	        SELECT 'certificate', certificate_uid::text
	          FROM certificates WHERE application_uid = $1
	         UNION ALL
	        SELECT 'task', task_uid::text FROM tasks WHERE application_uid = $1
	         UNION ALL
	        SELECT 'email', email_uid::text FROM emails WHERE application_uid = $1
	         UNION ALL
	        (SELECT 'delivery', delivery_uid::text
	           FROM deliveries
	          WHERE application_uid = $1
	          ORDER BY created_at DESC
	          LIMIT ` + subjectLimit + `)) AS about
	  JOIN audit_log l ON l.subject_kind = about.kind AND l.subject = about.subject`

// Timeline returns a page of what happened to an application, newest first: the partner's
// requests, events, draws, documents, mails and operators' actions.
// delivery.Service.EventOutcomes reads the outcomes of the events. An application that does not
// exist has no entries. Error: VALIDATION_ERROR for the limit.
func (s *Service) Timeline(
	ctx context.Context, uid uuid.UUID, filter TimelineFilter,
) (Timeline, error) {
	if err := postgres.CheckLimit(filter.Limit); err != nil {
		return Timeline{}, err
	}
	query, args := filter.query(uid)
	var found Timeline
	if err := s.DB.SelectContext(ctx, &found.Entries, query, args...); err != nil {
		return Timeline{}, fmt.Errorf("reading the timeline of application %s: %w", uid, err)
	}
	if len(found.Entries) > filter.Limit {
		found.Entries = found.Entries[:filter.Limit]
		m := found.Entries[filter.Limit-1]
		found.Next = EntryCursor{At: m.At.UTC(), Rank: m.Rank, ID: m.ID}
	}
	return found, nil
}

// timelineOrder is the one order of entries. The id is compared byte by byte, whatever the
// database's collation.
const timelineOrder = ` ORDER BY at DESC, rank DESC, id COLLATE "C" DESC LIMIT $3`

const timelineColumns = `at, rank, kind, id, name, state, party, text, amount, count, http_status,
	error_class, again, body, duration_us, note`

// query joins the sources of the selected kinds. Each source returns at most one page, so that a
// long history costs no more than a short one.
func (f TimelineFilter) query(uid uuid.UUID) (string, []any) {
	kinds := f.Kinds
	if len(kinds) == 0 {
		kinds = EntryKinds()
	}
	names := make(pq.StringArray, 0, len(kinds))
	for _, kind := range kinds {
		names = append(names, string(kind))
	}
	args := []any{uid, names, f.Limit + 1}
	after := ``
	if !f.Before.IsZero() {
		args = append(args, f.Before.At, f.Before.Rank, f.Before.ID)
		// An index can serve the first condition, but not the second alone.
		after = ` WHERE at <= $4 AND (at, rank, id COLLATE "C") < ($4, $5, $6)`
	}
	var pages []string
	for _, source := range timelineSources {
		wanted := slices.ContainsFunc(source.kinds, func(kind EntryKind) bool {
			return slices.Contains(kinds, kind)
		})
		if wanted {
			pages = append(pages, `(SELECT `+timelineColumns+` FROM (`+source.query+
				`) AS source (`+timelineColumns+`)`+after+timelineOrder+`)`)
		}
	}
	return `SELECT ` + timelineColumns + ` FROM (` + strings.Join(pages, ` UNION ALL `) +
		`) AS entries WHERE $2::text[] IS NOT NULL` + timelineOrder, args
}

// EntryCursor is a position in a timeline. The zero cursor is its newest end.
type EntryCursor struct {
	At   time.Time `json:"t"`
	Rank int       `json:"r"`
	ID   string    `json:"i"`
}

// IsZero reports whether the cursor is the newest end.
func (c EntryCursor) IsZero() bool { return c.ID == "" }

// String returns the opaque text form, empty for the newest end.
func (c EntryCursor) String() string {
	if c.IsZero() {
		return ""
	}
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // a database time, a number and a text can always be encoded
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// ParseEntryCursor reads what String wrote. Error: VALIDATION_ERROR.
func ParseEntryCursor(text string) (EntryCursor, error) {
	var cursor EntryCursor
	if text == "" {
		return cursor, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(raw, &cursor)
	}
	year := cursor.At.Year()
	if err != nil || cursor.IsZero() || strings.ContainsRune(cursor.ID, 0) ||
		year < 1 || year > 9999 ||
		cursor.Rank < 0 || cursor.Rank > 100 {
		return EntryCursor{}, lending.Invalid("before",
			`"before" is not a position that a timeline returned; leave it out to start from the newest`)
	}
	return cursor, nil
}
