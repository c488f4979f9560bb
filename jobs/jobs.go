// Package jobs holds what runs alongside the requests: the workers of the queues, the
// periodic chores, and the loop that enqueues due deliveries.
//
// A worker is thin. It hands its job to the service responsible and tells the queue what
// to do next; the tables of the service remain authoritative.
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
	// Alerts monitors the health of subscriptions.
	Alerts *alert.Service
	// Requests is the log of the partners' requests.
	Requests *apilog.Service
	// Faults injects faults into deliveries in sandboxes; nil in production.
	Faults *fault.Service
	// Statements freezes the daily statements of merchants.
	Statements *statement.Service
	// MailSender sends the e-mails.
	MailSender *email.MailSender
	// Working, unless nil, records every job that this process works.
	Working *processes.Roster
	// WebhookTimeout bounds one attempt.
	WebhookTimeout time.Duration
	// Observe, unless nil, is called after every run of a job.
	Observe func(Run)
	// ObserveMail, unless nil, is called with the outcome of each attempt to send a mail.
	ObserveMail func(email.Outcome)
}

// The queue besides the services' own and queueHealth.
const queueChores = river.QueueDefault

// How many jobs of a queue one process works at a time.
const (
	emailWorkers   = 10
	bulkWorkers    = 4
	backlogWorkers = 2
	choreWorkers   = 2
	healthWorkers  = 3
)

// fetchCooldown is the shortest time between two fetches of a queue. A fetch takes the
// jobs inserted since the last one, so an event that comes just after a fetch waits for
// this long. With 5 ms no more was delivered, and the p99 was twice as high.
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
		// The library's default logs to standard output, which is reserved for the ready line.
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
		// Use db's clock instead of the machine's. This hook is meant for tests, but is the only one.
		Test: river.TestConfig{Time: queueClock{deps.DB}},
	}
	addChores(config, &deps)
	return config
}

const (
	// jobTimeout bounds jobs that set no limit of their own.
	jobTimeout = 40 * time.Second
	// databaseMargin is the time for an attempt's database work before its request, so that a slow
	// database does not cut the request short. It does not bound the record of its outcome.
	databaseMargin = 2 * time.Minute
	// stuckNotice is when the log calls a job stuck that exceeds its time. Until then it may
	// be waiting for the database to come back, to record its outcome.
	stuckNotice = 15 * time.Minute
)
