// Package jobs holds what runs beside the requests: the workers of the queues,
// the periodic chores, and what enqueues due deliveries.
//
// A worker is thin. It hands its job to the service that owns the matter and
// tells the queue what to do next; the truth stays in the service's tables.
package jobs

import (
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"drawbridge/internal/alert"
	"drawbridge/internal/apilog"
	"drawbridge/internal/document"
	"drawbridge/internal/email"
	"drawbridge/internal/idempotency"
	"drawbridge/internal/loan"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/processes"
	"drawbridge/internal/retention"
	"drawbridge/internal/statement"
	"drawbridge/internal/webhook"
	"drawbridge/internal/webhook/bulk"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/fault"
	"drawbridge/internal/webhook/subscription"
)

// Deps are what the workers call.
type Deps struct {
	DB          *postgres.DB
	Webhooks    *webhook.Services
	Idempotency *idempotency.Store
	Documents   *document.Store
	Loans       *loan.Service
	Operators   *operator.Service
	Retention   *retention.Service
	// Alerts watches over the health of subscriptions.
	Alerts *alert.Service
	// Requests is the log of the partners' requests.
	Requests *apilog.Service
	// Faults are what sandboxes do to deliveries on purpose; nil in production.
	Faults *fault.Service
	// Statements are the daily ones of merchants.
	Statements *statement.Service
	// MailSender sends the e-mails.
	MailSender *email.MailSender
	// Working is told of every job that this process works, unless nil.
	Working *processes.Roster
	// WebhookTimeout bounds one attempt.
	WebhookTimeout time.Duration
	// Observe is told of every run of a job, unless nil.
	Observe func(Run)
	// ObserveMail is told how each attempt to send a mail ended, unless nil.
	ObserveMail func(email.Outcome)
}

// The queues beside the webhooks' own.
const queueChores = river.QueueDefault

// How many jobs of a queue one process works at a time.
const (
	emailWorkers   = 10
	bulkWorkers    = 4
	backlogWorkers = 2
	choreWorkers   = 2
	healthWorkers  = 3
)

// fetchCooldown is the least time between two fetches of a queue. A fetch takes
// what has come in since the last, so an event that comes just after one waits
// for this long. At 5 ms no more was delivered, and the p99 was twice as high.
const fetchCooldown = 2 * time.Millisecond

// Config returns the settings of the queue's working client.
func Config(deps Deps) *river.Config {
	workers := river.NewWorkers()
	river.AddWorker(workers, &DeliverWebhook{
		Webhooks: deps.Webhooks, Limit: deps.WebhookTimeout + databaseMargin, DB: deps.DB,
	})
	river.AddWorker(workers, &BulkResend{Webhooks: deps.Webhooks})
	river.AddWorker(workers, &FollowBacklog{Webhooks: deps.Webhooks})
	river.AddWorker(workers, &SendEmail{MailSender: deps.MailSender, Observe: deps.ObserveMail})
	config := &river.Config{
		// Its own default writes to the standard output, which is the ready line's.
		Logger: QueueLogger(),
		Queues: map[string]river.QueueConfig{
			delivery.Queue:            {MaxWorkers: delivery.Workers},
			bulk.Queue:                {MaxWorkers: bulkWorkers},
			email.Queue:               {MaxWorkers: emailWorkers},
			subscription.BacklogQueue: {MaxWorkers: backlogWorkers},
			queueChores:               {MaxWorkers: choreWorkers},
			queueHealth:               {MaxWorkers: healthWorkers},
		},
		Workers: workers,
		Middleware: []rivertype.Middleware{
			&observer{working: deps.Working, observe: deps.Observe},
		},
		FetchCooldown: fetchCooldown,
		// Notifications announce new jobs; polling only covers a lost one.
		FetchPollInterval:    time.Second,
		RescueStuckJobsAfter: queueRescue,
		JobTimeout:           jobTimeout,
		JobStuckThreshold:    stuckNotice,
		MaxAttempts:          100,
		RetryPolicy:          quickRetry{deps.DB},
		// The clock is db's instead of the machine's. This hook is meant for tests, and is the only one.
		Test: river.TestConfig{Time: queueClock{deps.DB}},
	}
	addChores(config, &deps)
	return config
}

const (
	// jobTimeout bounds jobs that name no limit of their own.
	jobTimeout = 40 * time.Second
	// databaseMargin is what an attempt has for the database before its request, which
	// a slow one must not cut short. The record of its outcome is not bounded by it.
	databaseMargin = 2 * time.Minute
	// stuckNotice is when the log calls a job stuck that goes on beyond its time. Until
	// then it may wait for a database that is away, to write what it knows.
	stuckNotice = 15 * time.Minute
)
