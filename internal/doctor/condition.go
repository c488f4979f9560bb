package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"drawbridge/internal/app"
	"drawbridge/internal/processes"
	"drawbridge/internal/queue"
)

const (
	// partitionsWanted is how many months ahead there should be partitions; the workers keep three.
	partitionsWanted = 2
	// longTransaction and veryLongTransaction bound how long a transaction may be open: vacuum
	// cannot remove rows that became dead after it began.
	longTransaction, veryLongTransaction = 5 * time.Minute, time.Hour
	// oldXIDs and veryOldXIDs are ages of the oldest row. At two thousand million the server stops
	// accepting writes; autovacuum begins at two hundred million.
	oldXIDs, veryOldXIDs = 500_000_000, 1_500_000_000
	// stuckQueue is how long a job may be due.
	stuckQueue = 2 * time.Minute
	// oldBackup is the age after which another backup is due.
	oldBackup = 26 * time.Hour
)

// examineCondition checks what a running installation needs of its database and processes.
func examineCondition(ctx context.Context, s *app.Services) ([]Checkup, error) {
	condition, err := s.Processes.Condition(ctx)
	if err != nil {
		return nil, err
	}
	hosted := s.Settings.Env.Hosted()
	workers := Checkup{
		Name: "workers", Finding: OK,
		Detail: fmt.Sprintf("Workers running: %d.", condition.Workers),
	}
	if condition.Workers == 0 {
		workers.Finding = Warning
		if hosted {
			workers.Finding = Failed
		}
		workers.Detail = "No worker is running: no webhook and no e-mail is sent."
		workers.Remedy = "Start one: drawbridge serve --roles worker"
	}
	found := []Checkup{
		workers, judgePartitions(condition), judgeTransaction(condition.Transaction),
		judgeXIDs(condition), judgeBackup(condition, hosted),
	}
	queues, err := s.Queues().Queues(ctx)
	if err != nil {
		return append(found, Failure("queues", err, mayRead)), nil
	}
	overdue, err := s.Webhooks.Health.Overdue(ctx, s.Settings.WebhookTimeout)
	if err != nil {
		return append(found, Failure("deliveries", err, mayRead)), nil
	}
	deliveries := Checkup{Name: "deliveries", Finding: OK, Detail: "None is overdue."}
	if overdue.Count > 0 {
		deliveries.Finding = Failed
		deliveries.Detail = fmt.Sprintf("%d are due and not sent, the oldest since %s.", overdue.Count,
			overdue.Oldest.UTC().Format(time.RFC3339))
		deliveries.Remedy = "Check that a worker is running and no queue is paused. drawbridge " +
			"delivery list --state pending shows whose they are; if those of all subscriptions wait, " +
			"start another worker: drawbridge serve --roles worker"
	}
	return append(found, judgeQueues(queues, condition.Now), deliveries), nil
}

func judgePartitions(c processes.Condition) Checkup {
	found := Checkup{
		Name: "partitions", Finding: OK,
		Detail: fmt.Sprintf("Events have tables for this month and %d more.", c.PartitionsAhead),
	}
	switch {
	case c.PartitionsAhead < 0:
		found.Finding, found.Detail = Failed, "Events of this month have no table: requests fail."
	case c.PartitionsAhead < partitionsWanted:
		found.Finding = Warning
	default:
		return found
	}
	found.Remedy = "A worker creates them every hour, and any process at its start: drawbridge " +
		"serve. If one is running, its log says why it fails: grep 'making partitions'."
	return found
}

func judgeTransaction(open processes.Transaction) Checkup {
	took := time.Duration(open.Seconds) * time.Second
	found := Checkup{
		Name: "transactions", Finding: grade(took, longTransaction, veryLongTransaction),
		Detail: "The longest open one has taken " + took.String() + " so far.",
	}
	if found.Finding == OK {
		return found
	}
	found.Detail = "One has been open for " + took.String() + ", and vacuum waits for it: " +
		open.Holder + "."
	found.Remedy = psql(fmt.Sprintf("SELECT pg_terminate_backend(%d)", open.PID))
	if open.PID == 0 {
		found.Remedy = psql("ROLLBACK PREPARED '" + open.Holder + "'")
	}
	found.Remedy += "; if it belongs to another role, as a superuser."
	return found
}

func judgeXIDs(c processes.Condition) Checkup {
	found := Checkup{
		Name: "xids", Finding: grade(c.XIDAge, oldXIDs, veryOldXIDs),
		Detail: fmt.Sprintf("The oldest row is %d million transactions old, of 2000 million at most.",
			c.XIDAge/1_000_000),
	}
	if found.Finding != OK {
		found.Remedy = "Vacuum has not kept up: end old transactions and prepared ones, drop unused " +
			"replication slots, then, as a superuser: vacuumdb --all --freeze --jobs=4"
	}
	return found
}

func judgeBackup(c processes.Condition, hosted bool) Checkup {
	found := Checkup{Name: "backup", Finding: OK, Detail: "The server does not say that it fails."}
	if c.ArchiveFailing {
		found.Finding, found.Detail = Failed, "The write-ahead log is not archived: the last try failed."
		found.Remedy = "Fix what archive_command needs; the error is in the server's log: " +
			psql("SELECT last_failed_wal, last_failed_time FROM pg_stat_archiver")
		return found
	}
	switch {
	case c.Recorded && c.Now.Sub(*c.BackedUpAt) < oldBackup:
		found.Detail = "The last one was recorded at " + c.BackedUpAt.UTC().Format(time.RFC3339) + "."
		return found
	case c.Recorded:
		found.Finding = Warning
		found.Detail = "The last one was recorded at " + c.BackedUpAt.UTC().Format(time.RFC3339) + "."
	case hosted:
		found.Finding, found.Detail = Warning, "None was ever recorded."
	default:
		found.Finding, found.Detail = Skipped, "None was recorded, and development needs none."
		return found
	}
	found.Remedy = "Make a backup, and record each one: drawbridge backup record"
	return found
}

// judgeQueues reports the worst of the queues: paused ones first.
func judgeQueues(queues []queue.Queue, now time.Time) Checkup {
	found := Checkup{Name: "queues", Finding: OK, Detail: "None is paused, and none falls behind."}
	var paused, late []string
	for _, one := range queues {
		if one.PausedAt != nil {
			paused = append(paused, one.Name)
		} else if one.Oldest != nil && now.Sub(*one.Oldest) > stuckQueue {
			late = append(late, fmt.Sprintf("%s (%d jobs wait, the oldest for %s)", one.Name,
				one.Depth[queue.StateAvailable], now.Sub(*one.Oldest).Round(time.Second)))
		}
	}
	if len(paused) > 0 {
		found.Finding = Failed
		found.Detail = "Paused: " + strings.Join(paused, ", ") + "."
		found.Remedy = "drawbridge queue resume " + paused[0]
	} else if len(late) > 0 {
		found.Finding = Failed
		found.Detail = "Falling behind: " + strings.Join(late, ", ") + "."
		found.Remedy = "Start a worker, or one more: drawbridge serve --roles worker"
	}
	return found
}
