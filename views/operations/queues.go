package operations

import (
	"time"

	"github.com/a-h/templ"

	"drawbridge/internal/queue"
	"drawbridge/views/ui"
)

// QueueWord is the name of a queue in words.
func QueueWord(name string) string {
	if word := queueWords[name]; word != "" {
		return word
	}
	return name
}

var queueWords = map[string]string{
	"backlog": "Backlogs", "bulk": "Bulk re-sends", "default": "General work", "email": "E-mails",
	"health": "Health of endpoints", "webhook": "Deliveries",
}

func queueChip(q queue.Queue, now time.Time) ui.ChipProps {
	switch {
	case q.PausedAt != nil:
		return ui.ChipProps{Icon: "pause", Word: "Paused", Tone: ui.Warn}
	case q.Worked(now):
		return ui.ChipProps{Icon: "circle-check", Word: "Working", Tone: ui.Good}
	}
	return ui.ChipProps{Icon: "circle-help", Word: "No worker", Tone: ui.Mute}
}

// queueTable lists queues; for those who may open River's console, the numbers link to the
// jobs there.
func queueTable(rows []queue.Queue, now time.Time) ui.TableProps[queue.Queue] {
	count := func(title, class string, state queue.State) ui.Column[queue.Queue] {
		return ui.Column[queue.Queue]{
			Title: title, Class: class, Named: true,
			Cell: func(q queue.Queue) templ.Component { return depthCell(q, state) },
		}
	}
	return ui.TableProps[queue.Queue]{
		Caption: "Queues by name", Rows: rows,
		RowID: func(q queue.Queue) string { return "queue-" + q.Name },
		Columns: []ui.Column[queue.Queue]{
			ui.Chips("State", "w-state", func(q queue.Queue) ui.ChipProps { return queueChip(q, now) }),
			{Title: "Queue", Header: true, Cell: func(q queue.Queue) templ.Component {
				return queueNameCell(q, queueChip(q, now))
			}},
			count("Due", "col-a w-short end", queue.StateAvailable),
			count("Running", "col-a w-rate end", queue.StateRunning),
			count("Retrying", "col-a w-rate end", queue.StateRetryable),
			count("Later", "col-c w-rate end", queue.StateScheduled),
			count("Given up", "col-a w-rate end", queue.StateDiscarded),
			ui.Times("Oldest due", "col-b w-time end",
				func(q queue.Queue) time.Time { return ui.TimeOf(q.Oldest) }).Titled(),
			{Title: "Action", Class: "w-act end", Cell: queueActCell},
		},
	}
}
