package operations

import (
	"strconv"
	"time"

	"github.com/a-h/templ"

	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// queueWords are what the queues are called.
var queueWords = map[string]string{
	"bulk": "Bulk re-sends", "default": "General work", "email": "E-mails",
	"health": "Health of endpoints", "webhook": "Deliveries",
}

// QueueWord is what a queue is called.
func QueueWord(name string) string {
	if word := queueWords[name]; word != "" {
		return word
	}
	return name
}

// jobWords say what the kinds of jobs do.
var jobWords = map[string]string{
	"housekeep": "Makes partitions ahead, clears what expired", "probe_endpoints": "Probes endpoints",
	"retain": "Removes what is kept no longer", "send_email": "Sends an e-mail",
	"tally_outcomes": "Adds attempts up", "watch_health": "Follows health, raises alarms",
	"webhook_bulk_resend": "Runs a bulk re-send", "webhook_deliver": "Sends a delivery",
}

// JobWord says what a kind of job does.
func JobWord(kind string) string {
	if word := jobWords[kind]; word != "" {
		return word
	}
	return kind
}

// QueueRow is one queue as it is now.
type QueueRow struct {
	Name   string
	Paused time.Time
	// Worked tells that a process works the queue.
	Worked bool
	// Due, Running, Retrying, Later and Given up count jobs; the texts say
	// "10,000+" beyond what is counted.
	Due, Running, Retrying, Later, GivenUp string
	Oldest                                 time.Time
	// Act is "pause", "resume" or empty for who may do neither.
	Act string
}

func (r QueueRow) chip() ui.ChipProps {
	switch {
	case !r.Paused.IsZero():
		return ui.ChipProps{Icon: "pause", Word: "Paused", Tone: ui.Warn}
	case r.Worked:
		return ui.ChipProps{Icon: "circle-check", Word: "Working", Tone: ui.Good}
	}
	return ui.ChipProps{Icon: "circle-help", Word: "No worker", Tone: ui.Mute}
}

// Queues is the page of the job queues.
type Queues struct {
	ui.Frame
	Rows []QueueRow
	// Console is the address of the jobs' own console; empty for who may not.
	Console string
}

// JobChip describes a job's state.
func JobChip(state string) ui.ChipProps {
	switch state {
	case "available":
		return ui.ChipProps{Icon: "clock", Word: "Due", Tone: ui.Calm}
	case "running":
		return ui.ChipProps{Icon: "loader", Word: "Running", Tone: ui.Calm}
	case "retryable":
		return ui.ChipProps{Icon: "refresh-cw", Word: "Retrying", Tone: ui.Warn}
	case "scheduled":
		return ui.ChipProps{Icon: "clock", Word: "Later", Tone: ui.Mute}
	case "completed":
		return ui.ChipProps{Icon: "circle-check", Word: "Done", Tone: ui.Good}
	case "cancelled":
		return ui.ChipProps{Icon: "ban", Word: "Cancelled", Tone: ui.Mute}
	case "discarded":
		return ui.ChipProps{Icon: "circle-x", Word: "Given up", Tone: ui.Bad}
	}
	return ui.ChipProps{Icon: "circle-help", Word: state, Tone: ui.Mute}
}

// JobRow is one job.
type JobRow struct {
	ID       int64
	Kind     string
	Queue    string
	State    string
	Attempts string
	Error    string
	Due      time.Time
}

// Jobs is a list of jobs.
type Jobs struct {
	ui.Frame
	Rows   []JobRow
	State  string
	Queue  string
	Tabs   []ui.Tab
	Active []ui.ActiveFilter
	Queues []ui.Option
	Fault  string
	Newest string
	Older  string
}

// none says that no job is in the state that is listed.
func (p Jobs) none() string {
	switch p.State {
	case "available":
		return "No job is due"
	case "running":
		return "No job is running"
	case "retryable":
		return "No job waits for a retry"
	case "scheduled":
		return "No job waits for its time"
	case "cancelled":
		return "No job was cancelled"
	case "discarded":
		return "No job was given up"
	}
	return "No such job"
}

// JobFailure is one failed attempt of a job.
type JobFailure struct {
	At      time.Time
	Attempt int
	Error   string
}

// Job is the page of one job.
type Job struct {
	ui.Frame
	JobRow
	Created   time.Time
	Attempted time.Time
	Finalized time.Time
	Args      string
	// About is the page of what the job delivers, and its name; empty without one.
	About, AboutName string
	Failures         []JobFailure
	CanRetry         bool
	CanCancel        bool
}

func queueTable(rows []QueueRow) ui.TableProps[QueueRow] {
	count := func(title, class, state string, of func(QueueRow) string) ui.Column[QueueRow] {
		return ui.Column[QueueRow]{Title: title, Class: class, Cell: func(r QueueRow) templ.Component {
			return depthCell(of(r), paths.JobsOf(state, r.Name))
		}}
	}
	return ui.TableProps[QueueRow]{
		Caption: "Queues by name", Rows: rows,
		RowID: func(r QueueRow) string { return "queue-" + r.Name },
		Columns: []ui.Column[QueueRow]{
			{Title: "State", Class: "w-state", Cell: func(r QueueRow) templ.Component {
				return ui.Chip(r.chip())
			}},
			{Title: "Queue", Header: true, Cell: queueNameCell},
			count("Due", "w-short end", "available", func(r QueueRow) string { return r.Due }),
			count("Running", "col-a w-rate end", "running", func(r QueueRow) string { return r.Running }),
			count("Retrying", "col-a w-rate end", "retryable",
				func(r QueueRow) string { return r.Retrying }),
			count("Later", "col-c w-rate end", "scheduled", func(r QueueRow) string { return r.Later }),
			count("Given up", "col-a w-rate end", "discarded", func(r QueueRow) string { return r.GivenUp }),
			{Title: "Oldest due", Class: "col-b w-time end", Cell: func(r QueueRow) templ.Component {
				return ui.Time(r.Oldest)
			}},
			{Title: "Action", Class: "w-act end", Cell: queueActCell},
		},
	}
}

func jobTable(rows []JobRow) ui.TableProps[JobRow] {
	return ui.TableProps[JobRow]{
		Caption: "Jobs, newest first", Rows: rows,
		RowID: func(r JobRow) string { return "job-" + strconv.FormatInt(r.ID, 10) },
		Href:  func(r JobRow) string { return paths.ToID(paths.Job, r.ID) },
		Columns: []ui.Column[JobRow]{
			{Title: "State", Class: "w-state", Cell: func(r JobRow) templ.Component {
				return ui.Chip(JobChip(r.State))
			}},
			{Title: "Job", Class: "w-third", Header: true, Cell: jobNameCell},
			{Title: "Queue", Class: "col-b w-id", Cell: func(r JobRow) templ.Component {
				return visibleCell(QueueWord(r.Queue))
			}},
			{Title: "Attempts", Class: "col-a w-rate", Cell: func(r JobRow) templ.Component {
				return visibleCell(r.Attempts)
			}},
			{Title: "Last error", Class: "col-a", Cell: func(r JobRow) templ.Component {
				return visibleCell(r.Error)
			}},
			{Title: "Due", Class: "w-time", Cell: func(r JobRow) templ.Component {
				return ui.Time(r.Due)
			}},
		},
	}
}

func failureTable(rows []JobFailure) ui.TableProps[JobFailure] {
	return ui.TableProps[JobFailure]{
		Caption: "Failed attempts, newest first", Rows: rows,
		RowID: func(f JobFailure) string { return "failure-" + strconv.Itoa(f.Attempt) },
		Columns: []ui.Column[JobFailure]{
			{Title: "Attempt", Class: "w-rate", Header: true, Cell: func(f JobFailure) templ.Component {
				return visibleCell(ui.Number(f.Attempt))
			}},
			{Title: "Error", Class: "wrap", Cell: func(f JobFailure) templ.Component {
				return sideCell("error", f.Error, true, false)
			}},
			{Title: "When", Class: "w-time", Cell: func(f JobFailure) templ.Component {
				return ui.Time(f.At)
			}},
		},
	}
}
