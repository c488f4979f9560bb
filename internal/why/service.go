package why

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/search"
	"drawbridge/internal/webhook/delivery"
)

// Service answers questions about one database.
type Service struct {
	DB         *postgres.DB
	Deliveries *delivery.Service
	Search     *search.Service
}

// maxConsidered is how many of the newest events that match a question are examined.
const maxConsidered = 50

// factsOf reads everything except the event, and the uid of the event: each part is one index
// lookup by the application, the partner, the draw or the event. Of several events, one that
// failed and was not made good by another delivery comes first, then one still to be sent:
// whoever misses an event does not mean a newer one that arrived. Deliveries that are not made
// yet are in the outbox. A delivery is created at the same time as its event or later, give or
// take microseconds.
const factsOf = `
	SELECT a.status AS application_status, coalesce(a.document_status, '') AS document_status,
	       (SELECT count(*) FROM tasks t WHERE t.application_uid = a.application_uid) AS tasks,
	       coalesce(d.merchant_disbursement_id, 0) AS draw,
	       coalesce(d.status, '') AS funding_status, e.event_uid,
	       coalesce(t.title, '') AS task, k.of_kind,
	       s.subscriptions, s.wanting, s.paused
	  FROM applications a
	  LEFT JOIN LATERAL (
	           SELECT merchant_disbursement_id, status
	             FROM disbursements
	            WHERE application_uid = a.application_uid
	              AND $4
	              AND ($5::bigint = 0 OR merchant_disbursement_id = $5)
	            ORDER BY merchant_disbursement_id DESC
	            LIMIT 1) d ON true
	  LEFT JOIN LATERAL (
	           SELECT fits.event_uid, fits.subject
	             FROM (SELECT event_uid, occurred_at, subject
	                     FROM events
	                    WHERE application_uid = a.application_uid
	                      AND kind = $2
	                      AND ($3 = '' OR status = $3)
	                      AND (NOT $4 OR $5 = 0 OR subject = 'disbursement/' || $5)
	                    ORDER BY occurred_at DESC, event_uid DESC
	                    LIMIT $7) fits
	            CROSS JOIN LATERAL (
	                     SELECT count(*) FILTER (WHERE state = 'failed'
	                                               AND made_good_by IS NULL) > 0 AS failed,
	                            count(*) FILTER (WHERE state IN ('pending', 'retrying')) > 0
	                            OR EXISTS (
	                                   SELECT
	                                     FROM outbox o
	                                    WHERE o.event_uid = fits.event_uid
	                                      AND o.owed <> '{}') AS waits
	                       FROM deliveries
	                      WHERE event_uid = fits.event_uid
	                        AND resend_of IS NULL
	                        AND created_at >= fits.occurred_at - interval '1 hour') became
	            WHERE NOT $4
	               OR became.failed
	               OR became.waits
	               OR fits.subject = 'disbursement/' || d.merchant_disbursement_id
	            ORDER BY became.failed DESC, became.waits DESC, fits.occurred_at DESC,
	                     fits.event_uid DESC
	            LIMIT 1) e ON true
	  LEFT JOIN tasks t ON t.application_uid = a.application_uid AND e.subject = 'task/' || t.task_uid
	 CROSS JOIN LATERAL (
	           SELECT count(*) AS of_kind
	             FROM events
	            WHERE application_uid = a.application_uid
	              AND kind = $2) k
	 CROSS JOIN LATERAL (
	           SELECT count(*) AS subscriptions,
	                  count(*) FILTER (WHERE wants) AS wanting,
	                  count(*) FILTER (WHERE wants AND state = 'paused') AS paused
	             FROM (SELECT s.state, s.events && $6::text[] AND (s.all_merchants OR EXISTS (
	                              SELECT
	                                FROM subscription_merchants m
	                               WHERE m.subscription_uid = s.subscription_uid
	                                 AND m.merchant_uid = a.merchant_uid)) AS wants
	                     FROM subscriptions s
	                    WHERE s.partner_uid = a.partner_uid
	                      AND s.state <> 'deleted') AS own) s
	 WHERE a.application_uid = $1`

// Ask answers one question. Error: NOT_FOUND for an application that does not exist or has no
// draw of that number.
func (s *Service) Ask(ctx context.Context, q Question) (Answer, error) {
	var row struct {
		Facts
		Draw     int64         `db:"draw"`
		EventUID uuid.NullUUID `db:"event_uid"`
	}
	funding := Facts{Question: q}.isFunding()
	err := s.DB.GetContext(ctx, &row, factsOf, q.ApplicationUID, string(q.Kind), q.Status, funding,
		q.Draw, pq.StringArray(q.Kind.Choices()), maxConsidered)
	switch {
	case postgres.IsNoRows(err):
		return Answer{}, lending.NewError(lending.CodeNotFound, "no application has the id %s",
			q.ApplicationUID)
	case err != nil:
		return Answer{}, fmt.Errorf("reading why %s missed %s: %w", q.ApplicationUID, q.Kind, err)
	case funding && q.Draw != 0 && row.Draw == 0:
		return Answer{}, lending.NewError(lending.CodeNotFound,
			"the application %s has no draw #%d", q.ApplicationUID, q.Draw)
	}
	facts := row.Facts
	facts.Question, facts.Draw = q, row.Draw
	if row.EventUID.Valid {
		event, err := s.Deliveries.EventByUID(ctx, row.EventUID.UUID)
		if err != nil {
			return Answer{}, err
		}
		facts.Event = &event
		if facts.Draw, err = drawOf(event); err != nil {
			return Answer{}, err
		}
	}
	return Explain(facts), nil
}

// drawOf returns the number of the draw that an event is about, 0 for none or if it is not
// recorded.
func drawOf(event delivery.EventDetail) (int64, error) {
	number, is := strings.CutPrefix(event.Subject, "disbursement/")
	if !is {
		return 0, nil
	}
	draw, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading the draw of event %s: %w", event.UID, err)
	}
	return draw, nil
}

// Candidate is an application, or one of its draws, that a text may mean.
type Candidate struct {
	Question
	Title, Detail string
}

// Candidates finds what the subject of a question may mean: an application by id, reference,
// address or borrower, or a draw by number.
func (s *Service) Candidates(
	ctx context.Context, subject string, of Question,
) ([]Candidate, error) {
	hits, err := s.Search.Find(ctx, subject)
	if err != nil {
		return nil, err
	}
	var found []Candidate
	for _, hit := range hits {
		if hit.Kind != search.Application && hit.Kind != search.Disbursement {
			continue
		}
		one := Candidate{Question: of, Title: hit.Title, Detail: hit.Detail}
		if hit.Kind == search.Disbursement {
			if one.Draw, err = strconv.ParseInt(hit.Part, 10, 64); err != nil {
				return nil, fmt.Errorf("reading the number of a draw: %w", err)
			}
		}
		if one.ApplicationUID, err = uuid.Parse(hit.ID); err != nil {
			return nil, fmt.Errorf("reading the id of a hit: %w", err)
		}
		found = append(found, one)
	}
	return found, nil
}

// phrase is a name that people use for an event, with the status that it implies.
type phrase struct {
	words  string
	kind   lending.EventKind
	status string
}

// phrases are all that Parse recognises, those with the most words first.
var phrases = sortedPhrases()

func sortedPhrases() []phrase {
	all := []phrase{
		{"funding requested", lending.EventFundingChanged, string(lending.FundingRequested)},
		{"funding processing", lending.EventFundingChanged, string(lending.FundingProcessing)},
		{"processing", lending.EventFundingChanged, string(lending.FundingProcessing)},
		{"settled", lending.EventFundingSettled, ""},
		{"settlement", lending.EventFundingSettled, ""},
		{"returned", lending.EventFundingReturned, ""},
		{"draw cancelled", lending.EventFundingCancelled, ""},
		{"documents sent", lending.EventDocumentSent, ""},
		{"documents signed", lending.EventDocumentSigned, ""},
		{"signed", lending.EventDocumentSigned, ""},
		{"status change", lending.EventStatusUpdated, ""},
		{"status changed", lending.EventStatusUpdated, ""},
		{"status update", lending.EventStatusUpdated, ""},
		{"amount changed", lending.EventAmountUpdated, ""},
		{"amount update", lending.EventAmountUpdated, ""},
		{"offer update", lending.EventOfferUpdated, ""},
		{"new task", lending.EventTaskCreated, ""},
		{"task completed", lending.EventTaskUpdated, string(lending.TaskCompleted)},
		{"task cancelled", lending.EventTaskUpdated, string(lending.TaskCancelled)},
		{"task updated", lending.EventTaskUpdated, ""},
		{"document_sent", lending.EventDocumentSent, ""},
		{"document_signed", lending.EventDocumentSigned, ""},
		{"funding_requested", lending.EventFundingChanged, string(lending.FundingRequested)},
		{"funding_processing", lending.EventFundingChanged, string(lending.FundingProcessing)},
		{"funding_settled", lending.EventFundingSettled, ""},
		{"funding_cancelled", lending.EventFundingCancelled, ""},
		{"funding_returned", lending.EventFundingReturned, ""},
	}
	for _, kind := range lending.AllEventKinds() {
		all = append(all, phrase{string(kind), kind, ""}, phrase{strings.ToLower(kind.Title()), kind, ""})
	}
	for _, status := range lending.AllApplicationStatuses() {
		all = append(all, phrase{
			strings.ToLower(string(status)), lending.EventStatusUpdated, string(status),
		})
	}
	slices.SortStableFunc(all, func(a, b phrase) int {
		return strings.Count(b.words, " ") - strings.Count(a.words, " ")
	})
	return all
}

// fillers are words of a question that name nothing.
var fillers = strings.Fields("why did does has have was is not didn't hasn't never no get got " +
	"receive received arrive arrived event webhook draw loan application the a an of for yet")

// Parse parses a question as people type it into its subject and the missed event. asked is
// false for a text that names no kind of event, or nothing else.
func Parse(text string) (subject string, q Question, asked bool) {
	words := strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune(`?,;"“”`, r)
	})
	for _, phrase := range phrases {
		named := strings.Fields(phrase.words)
		for at := 0; at+len(named) <= len(words); at++ {
			if !strings.EqualFold(strings.Join(words[at:at+len(named)], " "), phrase.words) {
				continue
			}
			rest := slices.Concat(words[:at], words[at+len(named):])
			rest = slices.DeleteFunc(rest, func(word string) bool {
				return slices.Contains(fillers, strings.ToLower(word))
			})
			subject = strings.Join(rest, " ")
			return subject, Question{Kind: phrase.kind, Status: phrase.status}, subject != ""
		}
	}
	return "", Question{}, false
}
