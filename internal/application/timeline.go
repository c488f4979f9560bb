package application

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
)

// MomentKind sorts the moments of a timeline by what they are about.
type MomentKind string

// The kinds of moments. The first five are about the application itself and
// hold its events; the others tell what followed from them.
const (
	MomentStatus   MomentKind = "status"   // created, status changed
	MomentOffer    MomentKind = "offer"    // amount or terms changed
	MomentDocument MomentKind = "document" // loan documents, completion certificates
	MomentFunding  MomentKind = "funding"  // draws and what became of them
	MomentTask     MomentKind = "task"
	MomentDelivery MomentKind = "delivery" // an event on its way to an endpoint
	MomentEmail    MomentKind = "email"
	MomentOperator MomentKind = "operator" // what an operator did, from the audit log
)

// MomentKinds lists every kind once.
func MomentKinds() []MomentKind {
	return []MomentKind{
		MomentStatus, MomentOffer, MomentDocument, MomentFunding, MomentTask,
		MomentDelivery, MomentEmail, MomentOperator,
	}
}

// MaxMoments is how many moments a timeline holds.
const MaxMoments = 400

// What a moment is, beside the event kinds that lending knows.
const (
	NameCreated     = "application.created"
	NameCertificate = "certificate.stored"
	NameDraw        = "draw.requested"
	NameCancelled   = "draw.cancelled"
)

// Moment is one thing that happened to an application.
type Moment struct {
	At   time.Time  `db:"at"`
	Kind MomentKind `db:"kind"`
	// ID is the uid of the event, delivery, certificate or mail, the number of
	// the disbursement or the audit entry; unique among moments of one Name.
	ID string `db:"id"`
	// Name is the event's kind, the mail's kind, the operator's action, or one
	// of the names above.
	Name string `db:"name"`
	// State is the status that an event carries, a delivery's or a mail's state,
	// a draw's kind.
	State string `db:"state"`
	// Party is who did it or to whom it went: a delivery's URL, a mail's
	// address, an operator, a client.
	Party string `db:"party"`
	// Text is a mail's subject or why it was not sent, an operator's reason or
	// else the name of what was acted on, the status that a delivery carries.
	Text string `db:"text"`
	// Amount is what a draw pays out, gross; nil for all else.
	Amount *lending.Money `db:"amount"`
	// Count is the number of attempts, or of files.
	Count int `db:"count"`
	// HTTPStatus and ErrorClass are those of a delivery's last attempt.
	HTTPStatus int    `db:"http_status"`
	ErrorClass string `db:"error_class"`
	// Again tells that a delivery or mail was re-sent by an operator.
	Again bool `db:"again"`
	// Body is the payload of an event.
	Body []byte `db:"body"`
}

// Timeline is what happened to an application, newest first.
type Timeline struct {
	Moments []Moment
	// Cut tells that there is more than MaxMoments; the oldest are left out.
	Cut bool
}

// timelineSources are the tables that a timeline is read from, as statements of
// one shape. The rank orders what one transaction did: first the cause, then
// its event, then what follows from it.
var timelineSources = []struct {
	kinds []MomentKind
	query string
}{
	{[]MomentKind{MomentStatus}, `
		SELECT created_at, 0, 'status', application_uid::text, '` + NameCreated + `', source,
		       '', '', NULL::numeric, 0, 0, '', false, NULL::bytea
		  FROM applications
		 WHERE application_uid = $1`},
	{[]MomentKind{MomentDocument}, `
		SELECT c.created_at, 1, 'document', c.certificate_uid::text, '` + NameCertificate + `', '',
		       '', '', NULL::numeric, (SELECT count(*)::integer
		                        FROM certificate_files f
		                       WHERE f.certificate_uid = c.certificate_uid), 0, '', false, NULL::bytea
		  FROM certificates c
		 WHERE c.application_uid = $1`},
	{[]MomentKind{MomentFunding}, `
		SELECT requested_at, 2, 'funding', merchant_disbursement_id::text, '` + NameDraw + `', kind,
		       requested_by, '', gross_amount, 0, 0, '', false, NULL::bytea
		  FROM disbursements
		 WHERE application_uid = $1`},
	{[]MomentKind{MomentFunding}, `
		SELECT cancelled_at, 2, 'funding', merchant_disbursement_id::text, '` + NameCancelled + `',
		       kind, '', '', gross_amount, 0, 0, '', false, NULL::bytea
		  FROM disbursements
		 WHERE application_uid = $1
		   AND cancelled_at IS NOT NULL`},
	{
		[]MomentKind{MomentStatus, MomentOffer, MomentDocument, MomentFunding, MomentTask},
		`SELECT * FROM (
			SELECT occurred_at, 3,
			       CASE split_part(kind, '.', 1) || '.' || split_part(kind, '.', 2)
			            WHEN 'application.status' THEN 'status'
			            WHEN 'application.amount' THEN 'offer'
			            WHEN 'application.offer' THEN 'offer'
			            WHEN 'disbursement.funding' THEN 'funding'
			            ELSE split_part(kind, '.', 1)
			       END AS moment,
			       event_uid::text, kind, status, '', '', NULL::numeric, 0, 0, '', false, body
			  FROM events
			 WHERE application_uid = $1) AS told
		 WHERE moment = ANY ($2)`,
	},
	{[]MomentKind{MomentDelivery}, `
		SELECT d.created_at, 4, 'delivery', d.delivery_uid::text, d.event, d.state,
		       s.url, d.status, NULL::numeric, d.attempt_count, coalesce(d.last_http_status, 0),
		       coalesce(d.last_error_class, ''), d.resend_of IS NOT NULL, NULL::bytea
		  FROM deliveries d
		  JOIN subscriptions s USING (subscription_uid)
		 WHERE d.application_uid = $1
		 ORDER BY d.created_at DESC
		 LIMIT $3`},
	{[]MomentKind{MomentEmail}, `
		SELECT created_at, 4, 'email', email_uid::text, kind, state,
		       to_address, CASE WHEN reason = '' THEN subject ELSE reason END, NULL::numeric,
		       attempt_count, 0, '', resend_of IS NOT NULL, NULL::bytea
		  FROM emails
		 WHERE application_uid = $1
		 ORDER BY created_at DESC
		 LIMIT $3`},
	{[]MomentKind{MomentOperator}, operatorMoments},
}

// operatorMoments reads the audit log about an application and what belongs to
// it. Each subject is looked up by the index over kind and subject.
const operatorMoments = `
	SELECT l.at, 5, 'operator', l.entry_id::text, l.action, l.subject_kind, l.actor,
	       CASE WHEN l.reason = '' THEN coalesce(l.after ->> 'name', '') ELSE l.reason END,
	       NULL::numeric, 0, 0, '', false, NULL::bytea
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
	          LIMIT $3)) AS about
	  JOIN audit_log l ON l.subject_kind = about.kind AND l.subject = about.subject
	 ORDER BY l.entry_id DESC
	 LIMIT $3`

// Timeline returns what happened to an application, newest first: its events
// and their deliveries, draws, documents, mails and what operators did. Kinds
// chooses; none means all. An application that does not exist has no moments.
func (s *Service) Timeline(
	ctx context.Context, uid uuid.UUID, kinds ...MomentKind,
) (Timeline, error) {
	query, args := timelineQuery(uid, kinds)
	var found Timeline
	if err := s.DB.SelectContext(ctx, &found.Moments, query, args...); err != nil {
		return Timeline{}, fmt.Errorf("reading the timeline of application %s: %w", uid, err)
	}
	if len(found.Moments) > MaxMoments {
		found.Moments, found.Cut = found.Moments[:MaxMoments], true
	}
	return found, nil
}

// timelineQuery joins the sources that have any of the kinds.
func timelineQuery(uid uuid.UUID, kinds []MomentKind) (string, []any) {
	if len(kinds) == 0 {
		kinds = MomentKinds()
	}
	sources := ``
	for _, source := range timelineSources {
		if !slices.ContainsFunc(source.kinds, func(kind MomentKind) bool {
			return slices.Contains(kinds, kind)
		}) {
			continue
		}
		if sources != `` {
			sources += ` UNION ALL `
		}
		sources += `(` + source.query + `)`
	}
	names := make(pq.StringArray, 0, len(kinds))
	for _, kind := range kinds {
		names = append(names, string(kind))
	}
	return `
		SELECT at, kind, id, name, state, party, text, amount, count, http_status, error_class,
		       again, body
		  FROM (` + sources + `) AS moments (at, rank, kind, id, name, state, party, text, amount,
		                                     count, http_status, error_class, again, body)
		 WHERE $2::text[] IS NOT NULL
		 ORDER BY at DESC,
		          rank DESC,
		          id DESC
		 LIMIT $3`, []any{uid, names, MaxMoments + 1}
}
