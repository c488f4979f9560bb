package operations

import (
	"slices"
	"strconv"
	"time"

	"drawbridge/views/ui"
)

// System is the page about the whole of Drawbridge. It changes nothing.
type System struct {
	ui.Frame
	Held Held
	// Facts are named values: versions, what is configured.
	Facts      []SystemFact
	Processes  []ProcessRow
	Database   []SystemFact
	Partitions []PartitionRow
	Queues     []WorkRow
	Chores     []ChoreRow
	Migrations []MigrationRow
}

// SystemFact is a named value.
type SystemFact struct {
	Name  string
	Value string
	// Note explains it; a Tone other than empty makes it a warning.
	Note string
	Tone ui.Tone
	// At is shown instead of the value unless it is zero.
	At time.Time
}

// ProcessRow is one process that serves.
type ProcessRow struct {
	ID, Host, Roles, Version string
	PID                      int
	Started, LastBeat        time.Time
	// Lost tells that it has not shown itself for a minute, Skewed that its clock
	// is not that of the database.
	Lost, Skewed bool
	Skew         string
	// Leads tells that it hands out the periodic jobs.
	Leads bool
}

// pid is an identifier: its digits are not grouped.
func (r ProcessRow) pid() string { return strconv.Itoa(r.PID) }

func (r ProcessRow) chip() ui.ChipProps {
	switch {
	case r.Lost:
		return ui.ChipProps{Icon: "circle-x", Word: "Lost", Tone: ui.Bad}
	case r.Skewed:
		return ui.ChipProps{Icon: "triangle-alert", Word: "Clock off", Tone: ui.Warn}
	}
	return ui.ChipProps{Icon: "circle-check", Word: "Alive", Tone: ui.Good}
}

// PartitionRow is a part of a large table.
type PartitionRow struct{ Table, Name, Size, Rows string }

// WorkRow is one queue of jobs.
type WorkRow struct {
	Name                        string
	Waiting, Running, Scheduled int
	Oldest                      time.Time
}

// ChoreRow is a job that comes back by itself.
type ChoreRow struct {
	Kind, Does         string
	LastDone, LastFail time.Time
	Open               int
}

// MigrationRow is one step of the schema.
type MigrationRow struct {
	ID      string
	Name    string
	Applied bool
}

// migrationWords name the steps that are no file of their own.
var migrationWords = map[string]string{
	"river": "Schema of the job queue", "lists": "Saved views and indexes of the lists",
	"filters": "Indexes of the lists' filters",
}

// word is what the step is called.
func (r MigrationRow) word() string {
	if word := migrationWords[r.Name]; word != "" {
		return word
	}
	return r.Name
}

// unmigrated tells that a step is missing.
func (p System) unmigrated() bool {
	return slices.ContainsFunc(p.Migrations, func(r MigrationRow) bool { return !r.Applied })
}

func (r MigrationRow) chip() ui.ChipProps {
	if r.Applied {
		return ui.ChipProps{Icon: "circle-check", Word: "Applied", Tone: ui.Good}
	}
	return ui.ChipProps{Icon: "circle-alert", Word: "Missing", Tone: ui.Bad}
}

func processTable(rows []ProcessRow) ui.TableProps[ProcessRow] {
	return ui.TableProps[ProcessRow]{
		Caption: "Processes that serve", RowID: func(r ProcessRow) string { return "process-" + r.ID },
		Rows: rows,
		Columns: []ui.Column[ProcessRow]{
			{Title: "State", Class: "w-state", Cell: processStateCell},
			{Title: "Host and process", Header: true, Cell: processHostCell},
			{Title: "Version", Class: "col-b", Cell: processVersionCell},
			{Title: "Clock ahead", Class: "end col-b", Cell: processSkewCell},
			{Title: "Started", Class: "col-a end", Cell: processStartedCell},
			{Title: "Last sign of life", Class: "end", Cell: processBeatCell},
		},
	}
}

func partitionTable(rows []PartitionRow) ui.TableProps[PartitionRow] {
	return ui.TableProps[PartitionRow]{
		Caption: "Partitions", RowID: func(r PartitionRow) string { return "partition-" + r.Name },
		Rows: rows,
		Columns: []ui.Column[PartitionRow]{
			{Title: "Partition", Header: true, Cell: partitionNameCell},
			{Title: "Of", Class: "col-b", Cell: partitionTableCell},
			{Title: "Size", Class: "end w-rate", Cell: partitionSizeCell},
			{Title: "Rows, about", Class: "end w-rate", Cell: partitionRowsCell},
		},
	}
}

func workTable(rows []WorkRow) ui.TableProps[WorkRow] {
	return ui.TableProps[WorkRow]{
		Caption: "Job queues", RowID: func(r WorkRow) string { return "queue-" + r.Name },
		Rows: rows,
		Columns: []ui.Column[WorkRow]{
			{Title: "Queue", Header: true, Cell: workNameCell},
			{Title: "Waiting", Class: "end", Cell: workWaitingCell},
			{Title: "Running", Class: "end", Cell: workRunningCell},
			{Title: "Later", Class: "end col-b", Cell: workScheduledCell},
			{Title: "Oldest waiting", Class: "end", Cell: workOldestCell},
		},
	}
}

func choreTable(rows []ChoreRow) ui.TableProps[ChoreRow] {
	return ui.TableProps[ChoreRow]{
		Caption: "Chores", RowID: func(r ChoreRow) string { return "chore-" + r.Kind }, Rows: rows,
		Columns: []ui.Column[ChoreRow]{
			{Title: "Chore", Header: true, Class: "wrap", Cell: choreNameCell},
			{Title: "Last done", Class: "w-time", Cell: choreDoneCell},
			{Title: "Last failed", Class: "w-time", Cell: choreFailedCell},
			{Title: "Waiting or running", Class: "end col-b w-result", Cell: choreOpenCell},
		},
	}
}

func migrationTable(rows []MigrationRow) ui.TableProps[MigrationRow] {
	return ui.TableProps[MigrationRow]{
		Caption: "Migrations", RowID: func(r MigrationRow) string { return "migration-" + r.ID },
		Rows: rows,
		Columns: []ui.Column[MigrationRow]{
			{Title: "State", Class: "w-state", Cell: migrationStateCell},
			{Title: "Migration", Header: true, Cell: migrationNameCell},
		},
	}
}
