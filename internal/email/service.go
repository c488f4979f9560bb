package email

import (
	"context"
	"database/sql"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/lib/pq"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// Queue is the job queue of every mail.
const Queue = "email"

// jobTries bounds how often the queue runs one job whose worker dies or cannot reach the database.
// Answers of the mail server do not count: each retry that they cause has its own job.
const jobTries = 100

// reasonPaused is why a mail of a paused application is suppressed.
const reasonPaused = "communications were paused"

// SendArgs is the job that makes one attempt to send a mail.
type SendArgs struct {
	EmailUID uuid.UUID `json:"email_uid"`
	// Attempt is the attempt's number, from 1. A job whose attempt has ended, left over from a crash,
	// does nothing.
	Attempt int `json:"attempt"`
	// Probe tries the mail server although it refuses us, to see whether it still does.
	Probe bool `json:"probe,omitempty"`
}

// Kind names the job in the queue.
func (SendArgs) Kind() string { return "send_email" }

// InsertOpts puts the job into its own queue.
func (SendArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: Queue, MaxAttempts: jobTries}
}

// Inserter adds jobs in a transaction of the database/sql driver.
type Inserter interface {
	InsertTx(
		ctx context.Context, tx *sql.Tx, args river.JobArgs, opts *river.InsertOpts,
	) (*rivertype.JobInsertResult, error)
	InsertManyFastTx(
		ctx context.Context, tx *sql.Tx, params []river.InsertManyParams,
	) (int, error)
}

// Service writes the e-mail log.
type Service struct {
	jobs Inserter
}

// NewService returns a service that adds its jobs with jobs.
func NewService(jobs Inserter) *Service { return &Service{jobs: jobs} }

// Schedule logs a mail and, unless it is paused, adds the job that sends it.
// Both happen in tx or not at all.
//
// A second welcome mail of an application is dropped without an error. An
// address that fails CheckAddress is a VALIDATION_ERROR.
func (s *Service) Schedule(ctx context.Context, tx *postgres.Tx, message Message) error {
	if err := CheckAddress(message.ToAddress); err != nil {
		return err
	}
	uid, state, reason := postgres.NewUID(tx.Now), StateQueued, ""
	if message.Paused {
		state, reason = StateSuppressed, reasonPaused
	}
	var added []bool
	err := tx.SelectContext(ctx, &added, `
		INSERT INTO emails (email_uid, application_uid, kind, to_name, to_address, params,
		                    state, reason, created_at, next_attempt_at, finished_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9,
		        CASE WHEN $7 = 'queued' THEN $9::timestamptz END,
		        CASE WHEN $7 <> 'queued' THEN $9::timestamptz END)
		ON CONFLICT (application_uid)
		   WHERE kind = 'welcome' AND resend_of IS NULL AND state <> 'suppressed'
		   DO NOTHING
		RETURNING true`,
		uid, postgres.OrNull(message.ApplicationUID), message.Kind, cleanName(message.ToName),
		message.ToAddress, message.Params, state, reason, tx.Now)
	if err != nil {
		return fmt.Errorf("logging the %s e-mail: %w", message.Kind, err)
	}
	if len(added) == 0 || message.Paused {
		return nil
	}
	return enqueue(ctx, tx, s.jobs, SendArgs{EmailUID: uid, Attempt: 1}, time.Time{})
}

// ScheduleAlert schedules the same mail to everyone who receives alerts: the addresses of the
// settings, or every operator and admin who may sign in; and to the addresses in also, each once.
func (s *Service) ScheduleAlert(
	ctx context.Context, tx *postgres.Tx, kind Kind, params map[string]string, also ...string,
) error {
	recipients, err := alertRecipients(ctx, tx, also)
	if err != nil || len(recipients) == 0 {
		return err
	}
	var uids []uuid.UUID
	var names, addresses []string
	var jobs []river.InsertManyParams
	for _, to := range recipients {
		uid := postgres.NewUID(tx.Now)
		uids, names = append(uids, uid), append(names, cleanName(to.Name))
		addresses = append(addresses, to.Address)
		jobs = append(jobs, river.InsertManyParams{Args: SendArgs{EmailUID: uid, Attempt: 1}})
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO emails (email_uid, kind, to_name, to_address, params, state, created_at,
		                    next_attempt_at)
		SELECT uid, $4, name, address, $5, 'queued', $6, $6
		  FROM unnest($1::uuid[], $2::text[], $3::text[]) AS recipient (uid, name, address)`,
		pq.Array(uids), pq.Array(names), pq.Array(addresses), kind, Facts(params), tx.Now)
	if err != nil {
		return fmt.Errorf("logging the alert %s: %w", kind, err)
	}
	if _, err := s.jobs.InsertManyFastTx(ctx, tx.Tx.Tx, jobs); err != nil {
		return fmt.Errorf("queueing the alert %s: %w", kind, err)
	}
	return nil
}

// Resend logs and queues another mail with the text of the mail uid, and returns the new uid. actor
// is who requested it, reason may be empty.
//
// It returns NOT_FOUND for an unknown uid, and INVALID_STATE for a mail that is
// still queued, was suppressed, or has no text any more.
func (s *Service) Resend(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, actor, reason string,
) (uuid.UUID, error) {
	if actor == "" {
		return uuid.Nil, lending.Required("actor")
	}
	if utf8.RuneCountInString(reason) > maxReason {
		return uuid.Nil, lending.Invalid("reason",
			`"reason" must be at most %d characters`, maxReason)
	}
	// The lock keeps others from re-sending the mail meanwhile, and its text stays.
	original, err := load[Email](ctx, tx, columns, uid, ` FOR NO KEY UPDATE`)
	if err == nil {
		err = original.CheckResend()
	}
	if err != nil {
		return uuid.Nil, err
	}
	// Its message id is not copied: receivers drop a second message with the same id.
	again := postgres.NewUID(tx.Now)
	_, err = tx.ExecContext(ctx, `
		INSERT INTO emails (email_uid, application_uid, kind, to_name, to_address, params,
		                    subject, html_body, text_body, state, created_at, next_attempt_at,
		                    resend_of, resent_by, resend_reason)
		SELECT $1, application_uid, kind, to_name, to_address, params,
		       subject, html_body, text_body, 'queued', $3, $3,
		       email_uid, $4, $5
		  FROM emails
		 WHERE email_uid = $2`, again, uid, tx.Now, actor, reason)
	if err != nil {
		return uuid.Nil, fmt.Errorf("logging the re-send of e-mail %s: %w", uid, err)
	}
	return again, enqueue(ctx, tx, s.jobs, SendArgs{EmailUID: again, Attempt: 1}, time.Time{})
}

const (
	// maxReason is the longest reason for a re-send, in characters.
	maxReason = 500
	// maxResend bounds a re-send of many mails, so that it stays one transaction.
	maxResend = 10_000
)

// Resent is a re-sent mail and the new one that re-sends it.
type Resent struct{ Original, Made uuid.UUID }

// ResendAll is Resend for many mails, each once, all or none; an error names the mail.
func (s *Service) ResendAll(
	ctx context.Context, tx *postgres.Tx, uids []uuid.UUID, actor, reason string,
) ([]Resent, error) {
	if len(uids) > maxResend {
		return nil, lending.NewError(lending.CodeValidation,
			"at most %d e-mails can be re-sent at once; narrow the time range", maxResend)
	}
	if err := lockOriginals(ctx, tx, uids); err != nil {
		return nil, err
	}
	seen := make(map[uuid.UUID]bool, len(uids))
	var all []Resent
	for _, uid := range uids {
		if seen[uid] {
			continue
		}
		seen[uid] = true
		made, err := s.Resend(ctx, tx, uid, actor, reason)
		if lending.ErrorCode(err) == lending.CodeInvalidState {
			err = lending.NewError(lending.CodeInvalidState, "%s: %s", uid, err)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, Resent{Original: uid, Made: made})
	}
	return all, nil
}

// ResendFound re-sends those results of FindResendable that nobody has re-sent meanwhile. Errors:
// those of ResendAll.
func (s *Service) ResendFound(
	ctx context.Context, tx *postgres.Tx, uids []uuid.UUID, actor, reason string,
) ([]Resent, error) {
	if len(uids) <= maxResend {
		var err error
		if uids, err = lockResendable(ctx, tx, uids); err != nil {
			return nil, err
		}
	}
	return s.ResendAll(ctx, tx, uids, actor, reason)
}

// ResendMatching re-sends the mails that FindResendable finds, guarded against concurrent re-sends.
// Errors: those of ResendAll.
func (s *Service) ResendMatching(
	ctx context.Context, tx *postgres.Tx, filter Filter, actor, reason string,
) ([]Resent, error) {
	uids, err := FindResendable(ctx, tx, filter, maxResend+1)
	if err != nil {
		return nil, err
	}
	return s.ResendFound(ctx, tx, uids, actor, reason)
}

// enqueue adds the job of an attempt that is due at a time, at once if that is zero.
func enqueue(
	ctx context.Context, tx *postgres.Tx, jobs Inserter, args SendArgs, due time.Time,
) error {
	_, err := jobs.InsertTx(ctx, tx.Tx.Tx, args, &river.InsertOpts{ScheduledAt: due})
	if err != nil {
		return fmt.Errorf("queueing attempt %d of e-mail %s: %w", args.Attempt, args.EmailUID, err)
	}
	return nil
}
