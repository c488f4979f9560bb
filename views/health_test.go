package views_test

import (
	"time"

	"github.com/a-h/templ"
	"github.com/google/uuid"

	"drawbridge/internal/alert"
	"drawbridge/internal/operator"
	"drawbridge/internal/processes"
	"drawbridge/internal/queue"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/migrations"
	"drawbridge/views/operations"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// healthSamplePages returns the overview, the alerts, the audit log, the job queues and the
// system, with the word wherever a partner or an operator could put it.
func healthSamplePages(word string) map[string]templ.Component {
	framed := func(body templ.Component) templ.Component {
		frame := sampleFrame(word)
		frame.May = func(string) bool { return true }
		return ui.Framed(frame, body)
	}
	listed := func(table templ.Component) templ.Component {
		return framed(ui.List(ui.ListProps{Intro: "Rows", Region: ui.ListRegion{Rows: 1, Table: table}}))
	}
	later := sampleTime.Add(time.Hour)
	open := alert.Item{
		UID: uuid.MustParse(sampleUID), Kind: alert.KindUsedUp, Partner: word,
		Endpoint: subscription.Endpoint{SubscriptionName: word, URL: word},
		Severity: alert.Problem, Detail: word, Count: 3, OpenedAt: sampleTime,
		LastSeenAt: sampleTime, Owner: word,
	}
	snoozed, closed := open, open
	snoozed.UID, snoozed.SnoozedUntil = uuid.MustParse(sampleSubscription), &later
	closed.ClosedAt, closed.ClosedBy, closed.Note = &later, word, word
	detail := func(item alert.Item, form operations.NoteForm) templ.Component {
		return framed(operations.Alert(item, sampleTime, form))
	}
	numbers := operations.Numbers{
		Span: "last hour", Outcomes: ui.BarPlotProps{
			ID: "plot", Title: "Deliveries per hour", Step: "Hour",
			Series: []ui.Series{{Name: "Failed", Tone: ui.Bad}, {Name: "Delivered", Tone: ui.Good}},
			Bars: []ui.Bar{
				{Start: sampleTime, Values: []int{1, 9}}, {Start: later, Values: []int{0, 0}},
			},
		},
		Figures: []operations.Figure{{
			Tile: ui.Tile{
				Label: "Delivered", Value: "9", Note: "8 a week before", Icon: "send", Tone: ui.Good,
				Href: paths.Deliveries,
			},
			Spark: ui.SparklineProps{Title: "Delivered", Points: []ui.SparkPoint{{Good: 9}}},
		}},
		Now: []ui.Tile{{
			Label: "Failed", Value: "3", Note: "of 12", Icon: "circle-x", Tone: ui.Bad,
			Href: paths.Deliveries,
		}},
		Latency: ui.LinePlotProps{
			ID: "latency", Title: "Time to answer", Step: "From",
			Series: []ui.Series{{Name: "Median", Tone: ui.Good}},
			Bars:   []ui.Bar{{Start: sampleTime, Values: []int{12}}},
		},
		Alerts: []alert.Item{open}, At: sampleTime,
		Begun: []operations.Begun{{
			Kind: "draw", Title: "Draws requested",
			Counts: []processes.StateCount{{State: "FUNDING_SETTLED", Count: 1}},
			Word:   func(string) string { return "Settled" },
			List:   func(string) string { return paths.Desk },
		}},
	}
	record := operator.Record{
		ID: 7, At: sampleTime, Actor: word, Address: word, Action: word, SubjectKind: word,
		Subject: word, Reason: word,
	}
	return map[string]templ.Component{
		"overview": framed(operations.Overview(operations.OverviewProps{
			Ranges:    []ui.Tab{{Label: "1 hour", Href: paths.Home, Current: true}},
			StreamURL: paths.HomeLive, PollURL: paths.Home, Numbers: numbers,
		})),
		"overview without numbers": framed(operations.Overview(
			operations.OverviewProps{Unavailable: true})),
		"alerts": listed(ui.Table(operations.AlertTable(
			[]alert.Item{open, snoozed}, sampleTime))),
		"alert": detail(snoozed, operations.NoteForm{
			Note: word, Wrong: map[string]string{"note": word, "until": word},
		}),
		"closed alert": detail(closed, operations.NoteForm{}),
		"audit log":    listed(ui.Table(operations.AuditTable([]operator.Record{record}))),
		"audit entry": framed(operations.AuditEntry(record, []operations.Difference{
			{Field: word, Before: word, After: "x", HasBefore: true, HasAfter: true},
		})),
		"queues": framed(operations.Queues([]queue.Queue{{
			Name: word, PausedAt: &later, SeenAt: &later, Oldest: &later,
			Depth: map[queue.State]int{queue.StateRunning: queue.MaxCount + 1},
		}}, sampleTime)),
		"system": framed(operations.System(processes.Report{
			Processes: []processes.Process{{
				Host: word, PID: 7, Roles: []string{"api"}, Version: "1", StartedAt: sampleTime,
				LastBeatAt: later,
			}},
			Queues:     []processes.Queue{{Name: "webhook", Waiting: 3, Oldest: &later}},
			Chores:     []processes.Chore{{Kind: "housekeep", LastDone: &later}},
			Partitions: []processes.Partition{{Table: "events", Name: "events_y2026m11", Bytes: 1, Rows: 2}},
			Migrations: []migrations.Step{
				{Version: 1, Name: "0001_river", Applied: true}, {Version: 2, Name: "0002"},
			},
			Database: processes.Database{OldestTransaction: &later, MaxConnections: 100},
		}, []operations.Fact{
			{Name: "Mail server", Value: "None", Tone: ui.Warn, Note: word},
			{Name: "Address", Value: word},
		}, operations.Quarantine{Since: sampleTime, Reason: word})),
	}
}
