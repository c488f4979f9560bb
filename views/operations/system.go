package operations

import (
	"fmt"
	"time"

	"github.com/a-h/templ"

	"drawbridge/internal/processes"
	"drawbridge/migrations"
	"drawbridge/views/ui"
)

const (
	// maxSkew is how far a clock may be off before the page says so.
	maxSkew = time.Second
	// longTransaction is how old a transaction may be before the page says so: it keeps dead
	// rows from being vacuumed.
	longTransaction = 5 * time.Minute
	// crowded is the percentage of used connections from which the page warns.
	crowded = 80
)

// Fact is a named value.
type Fact struct {
	Name  string
	Value string
	// Note explains it; a Tone other than empty makes it a warning.
	Note string
	Tone ui.Tone
	// At is shown instead of the value unless it is zero.
	At time.Time
}

func databaseFacts(database processes.Database) []Fact {
	connections := Fact{
		Name:  "Connections",
		Value: fmt.Sprintf("%d of %d", database.Connections, database.MaxConnections),
	}
	if database.Connections*100 >= database.MaxConnections*crowded {
		connections.Tone = ui.Warn
		connections.Note = "there are few left; use fewer processes, or allow more"
	}
	oldest := Fact{Name: "Oldest transaction", Value: "none"}
	if database.OldestTransaction != nil {
		oldest.At = *database.OldestTransaction
		if database.Now.Sub(oldest.At) > longTransaction {
			oldest.Note = "long: it keeps dead rows from being cleared"
		}
	}
	return []Fact{
		{Name: "PostgreSQL", Value: database.Version},
		{Name: "Size", Value: size(database.Bytes)},
		connections, oldest,
	}
}

// size formats a number of bytes with a suitable unit.
func size(bytes int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	value, unit := float64(bytes), 0
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", bytes)
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}

func processTable(report processes.Report) ui.TableProps[processes.Process] {
	return ui.TableProps[processes.Process]{
		Caption: "Processes that serve", Rows: report.Processes,
		RowID: func(p processes.Process) string { return "process-" + p.UID.String() },
		Columns: []ui.Column[processes.Process]{
			{Title: "State", Class: "w-state", Chip: func(p processes.Process) ui.ChipProps {
				switch {
				case report.Database.Now.Sub(p.LastBeatAt) > processes.Lost:
					return ui.ChipProps{Icon: "circle-x", Word: "Lost", Tone: ui.Bad}
				case p.Skew().Abs() > maxSkew:
					return ui.ChipProps{Icon: "triangle-alert", Word: "Clock off", Tone: ui.Warn}
				}
				return ui.ChipProps{Icon: "circle-check", Word: "Alive", Tone: ui.Good}
			}},
			{Title: "Host and process", Header: true, Cell: func(p processes.Process) templ.Component {
				return processHostCell(p, p.UID.String() == report.Leader)
			}},
			ui.Texts("Version", "col-b", func(p processes.Process) string { return p.Version }).Titled(),
			{Title: "Clock ahead", Class: "end col-b", Named: true, Text: func(p processes.Process) string {
				if skew := p.Skew(); skew < 0 {
					return "-" + ui.Duration(-skew)
				}
				return ui.Duration(p.Skew())
			}},
			ui.Times("Started", "col-a end",
				func(p processes.Process) time.Time { return p.StartedAt }).Titled(),
			ui.Times("Last sign of life", "end",
				func(p processes.Process) time.Time { return p.LastBeatAt }).Titled(),
		},
	}
}

func partitionTable(rows []processes.Partition) ui.TableProps[processes.Partition] {
	return ui.TableProps[processes.Partition]{
		Caption: "Partitions", Rows: rows,
		RowID: func(p processes.Partition) string { return "partition-" + p.Name },
		Columns: []ui.Column[processes.Partition]{
			{
				Title: "Partition", Header: true,
				Cell: func(p processes.Partition) templ.Component { return ui.Breaking(p.Name) },
			},
			{Title: "Of", Class: "col-b", Text: func(p processes.Partition) string { return p.Table }},
			ui.Texts("Size", "end w-rate", func(p processes.Partition) string { return size(p.Bytes) }),
			ui.Texts("Rows, about", "end w-rate", func(p processes.Partition) string {
				if p.Rows < 0 {
					return "not counted yet"
				}
				return ui.Number(int(p.Rows))
			}).Titled(),
		},
	}
}

func workTable(report processes.Report) ui.TableProps[processes.Queue] {
	count := func(title string, of func(q processes.Queue) int) ui.Column[processes.Queue] {
		return ui.Texts(title, "end col-b",
			func(q processes.Queue) string { return ui.Number(of(q)) }).Titled()
	}
	return ui.TableProps[processes.Queue]{
		Caption: "Job queues", Rows: report.Queues,
		RowID: func(q processes.Queue) string { return "queue-" + q.Name },
		Columns: []ui.Column[processes.Queue]{
			{
				Title: "Queue", Header: true,
				Text: func(q processes.Queue) string { return QueueWord(q.Name) },
			},
			count("Waiting", func(q processes.Queue) int { return q.Waiting }),
			count("Running", func(q processes.Queue) int { return q.Running }),
			count("Later", func(q processes.Queue) int { return q.Scheduled }),
			{Title: "Oldest waiting", Class: "end", Named: true, Time: func(q processes.Queue) time.Time {
				oldest := ui.TimeOf(q.Oldest)
				if oldest.After(report.Database.Now) {
					return time.Time{}
				}
				return oldest
			}},
		},
	}
}

// choreWords describe the kinds of chores.
var choreWords = map[string]string{
	"freeze_statements": "Freezes the statements of days that are over",
	"housekeep":         "Creates partitions ahead of time, removes what has expired",
	"probe_endpoints":   "Probes endpoints",
	"resume_mail":       "Releases e-mails whose wait has ended",
	"retain":            "Removes what is no longer kept",
	"tally_outcomes":    "Adds up attempts",
	"watch_health":      "Follows health, raises alerts",
}

func choreTable(rows []processes.Chore) ui.TableProps[processes.Chore] {
	return ui.TableProps[processes.Chore]{
		Caption: "Chores", Rows: rows,
		RowID: func(c processes.Chore) string { return "chore-" + c.Kind },
		Columns: []ui.Column[processes.Chore]{
			{Title: "Chore", Header: true, Class: "wrap", Cell: choreNameCell},
			ui.Times("Last done", "w-time",
				func(c processes.Chore) time.Time { return ui.TimeOf(c.LastDone) }).Titled(),
			ui.Times("Last failed", "col-b w-time",
				func(c processes.Chore) time.Time { return ui.TimeOf(c.LastFailed) }).Titled(),
			ui.Texts("Waiting or running", "end col-b w-result",
				func(c processes.Chore) string { return ui.Number(c.Open) }).Titled(),
		},
	}
}

// migrationWords name the migration steps that are not files.
var migrationWords = map[string]string{
	"river": "Schema of the job queue", "lists": "Saved views and indexes of the lists",
	"filters": "Indexes of the lists' filters",
}

func migrationTable(rows []migrations.Step) ui.TableProps[migrations.Step] {
	return ui.TableProps[migrations.Step]{
		Caption: "Migrations", Rows: rows,
		RowID: func(s migrations.Step) string { return fmt.Sprintf("migration-%d", s.Version) },
		Columns: []ui.Column[migrations.Step]{
			{Title: "State", Class: "w-state", Chip: func(s migrations.Step) ui.ChipProps {
				if s.Applied {
					return ui.ChipProps{Icon: "circle-check", Word: "Applied", Tone: ui.Good}
				}
				return ui.ChipProps{Icon: "circle-alert", Word: "Missing", Tone: ui.Bad}
			}},
			{Title: "Migration", Header: true, Text: func(s migrations.Step) string {
				if word := migrationWords[s.Name]; word != "" {
					return word
				}
				return s.Name
			}},
		},
	}
}
