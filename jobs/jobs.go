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
	river.AddWorker(workers, NewSendEmail(deps.MailSender, deps.ObserveMail))
	addChores(workers, &deps)
	var around []rivertype.Middleware
	if deps.Working != nil {
		around = append(around, &voucher{working: deps.Working})
	}
	around = append(around, &observer{observe: deps.Observe})
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
		Workers:       workers,
		Middleware:    around,
		PeriodicJobs:  periodicJobs(),
		FetchCooldown: fetchCooldown,
		// Notifications announce new jobs; polling only covers a lost one.
		FetchPollInterval:    time.Second,
		RescueStuckJobsAfter: queueRescue,
		JobTimeout:           jobTimeout,
		JobStuckThreshold:    stuckNotice,
		MaxAttempts:          100,
		RetryPolicy:          quickRetry{deps.DB},
	}
	FollowClock(config, deps.DB)
	return config
}

// addChores adds the workers of the periodic jobs. Those that go on for a while have a minute
// more, in which their last batch ends.
func addChores(workers *river.Workers, deps *Deps) {
	river.AddWorker(workers, &chore[HousekeepArgs]{timeout: housekeepFor, work: deps.housekeep})
	river.AddWorker(workers, &chore[RetainArgs]{
		timeout: retainFor + time.Minute, work: deps.retain,
	})
	river.AddWorker(workers, &chore[FreezeStatementsArgs]{
		timeout: statementFor + time.Minute, work: deps.freezeStatements,
	})
	river.AddWorker(workers, &chore[TallyOutcomesArgs]{work: deps.tallyOutcomes})
	river.AddWorker(workers, &chore[WatchHealthArgs]{work: deps.Alerts.Watch})
	river.AddWorker(workers, &chore[ProbeEndpointsArgs]{timeout: probeFor, work: deps.probeEndpoints})
	river.AddWorker(workers, &chore[ResumeMailArgs]{work: deps.resumeMail})
}

// periodicJobs are the jobs that come back by themselves. A round of those in the queue of
// health is given up when it fails: the next one begins where it did.
func periodicJobs() []*river.PeriodicJob {
	health := river.InsertOpts{Queue: queueHealth, MaxAttempts: 1}
	var all []*river.PeriodicJob
	for _, job := range []struct {
		every time.Duration
		args  river.JobArgs
		opts  river.InsertOpts
	}{
		{housekeepEvery, HousekeepArgs{}, river.InsertOpts{}},
		{retainEvery, RetainArgs{}, river.InsertOpts{}},
		{statementEvery, FreezeStatementsArgs{}, river.InsertOpts{}},
		{tallyEvery, TallyOutcomesArgs{}, health},
		{watchEvery, WatchHealthArgs{}, health},
		{probeEvery, ProbeEndpointsArgs{}, health},
		{resumeEvery, ResumeMailArgs{}, health},
	} {
		job.opts.UniqueOpts.ByPeriod = job.every
		all = append(all, river.NewPeriodicJob(
			river.PeriodicInterval(job.every),
			func() (river.JobArgs, *river.InsertOpts) {
				opts := job.opts
				return job.args, &opts
			},
			&river.PeriodicJobOpts{RunOnStart: true},
		))
	}
	return all
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
