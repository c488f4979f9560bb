package console

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/fleet"
	"drawbridge/views/operations"
	"drawbridge/views/ui"
)

const (
	// maxSkew is how far a clock may be off before it is pointed out.
	maxSkew = time.Second
	// longTransaction is how old a transaction may be before it is pointed out: it
	// keeps dead rows from being cleared.
	longTransaction = 5 * time.Minute
	// crowded is the share of the connections from which on it gets tight.
	crowded = 80
)

// SystemFacts are what the process knows of its configuration.
type SystemFacts struct {
	// KeyIDs name the keys for secrets at rest, the one in use first.
	KeyIDs []string
	// Bucket says where uploads are kept, without credentials.
	Bucket string
	// MailServer tells whether mails are sent.
	MailServer bool
}

// system shows how the whole of Drawbridge is.
func (c *Console) system(ctx echo.Context) error {
	report, err := c.Fleet.Report(ctx.Request().Context())
	if err != nil {
		return err
	}
	now := c.DB.Now()
	page := operations.System{
		Facts: c.systemFacts(), Database: databaseFacts(report.Database),
		Processes: processRows(report),
	}
	for _, partition := range report.Partitions {
		page.Partitions = append(page.Partitions, partitionRow(partition))
	}
	for _, queue := range report.Queues {
		row := operations.WorkRow{
			Name: queue.Name, Waiting: queue.Waiting, Running: queue.Running,
			Scheduled: queue.Scheduled,
		}
		if queue.Oldest != nil && queue.Oldest.Before(now) {
			row.Oldest = *queue.Oldest
		}
		page.Queues = append(page.Queues, row)
	}
	for _, chore := range report.Chores {
		page.Chores = append(page.Chores, operations.ChoreRow{
			Kind: chore.Kind, Does: operations.JobWord(chore.Kind), Open: chore.Open,
			LastDone: orNever(chore.LastDone), LastFail: orNever(chore.LastFailed),
		})
	}
	for _, step := range report.Migrations {
		page.Migrations = append(page.Migrations, operations.MigrationRow{
			ID: fmt.Sprint(step.Version), Name: step.Name, Applied: step.Applied,
		})
	}
	if page.Held, err = c.held(ctx.Request().Context()); err != nil {
		return err
	}
	page.Frame, err = c.frame(ctx, ui.SectionSystem, "System", ui.Crumb{Label: "System"})
	if err != nil {
		return err
	}
	return render(ctx, http.StatusOK, operations.SystemPage(page))
}

func orNever(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return *at
}

func (c *Console) systemFacts() []operations.SystemFact {
	mail := operations.SystemFact{Name: "Mail server", Value: "Configured", Tone: ui.Good}
	if !c.System.MailServer {
		mail = operations.SystemFact{
			Name: "Mail server", Value: "None", Tone: ui.Warn, Note: "e-mails are kept, not sent",
		}
	}
	return []operations.SystemFact{
		{Name: "Version", Value: c.Version},
		{Name: "Public address", Value: c.PublicURL},
		{Name: "Uploads", Value: c.System.Bucket},
		mail,
		{
			Name: "Keys for secrets", Value: strings.Join(c.System.KeyIDs, ", "),
			Note: "new values are sealed with the first",
		},
	}
}

func databaseFacts(database fleet.Database) []operations.SystemFact {
	connections := operations.SystemFact{
		Name:  "Connections",
		Value: fmt.Sprintf("%d of %d", database.Connections, database.MaxConnections),
	}
	if database.Connections*100 >= database.MaxConnections*crowded {
		connections.Tone = ui.Warn
		connections.Note = "there are few left; use fewer processes, or allow more"
	}
	oldest := operations.SystemFact{Name: "Oldest transaction", Value: "none"}
	if database.OldestTransaction != nil {
		oldest.At = *database.OldestTransaction
		if database.Now.Sub(oldest.At) > longTransaction {
			oldest.Note = "long: it keeps dead rows from being cleared"
		}
	}
	return []operations.SystemFact{
		{Name: "PostgreSQL", Value: database.Version},
		{Name: "Size", Value: size(database.Bytes)},
		connections, oldest,
	}
}

func processRows(report fleet.Report) []operations.ProcessRow {
	var rows []operations.ProcessRow
	for _, process := range report.Processes {
		skew := process.Skew()
		rows = append(rows, operations.ProcessRow{
			ID: process.UID.String(), Host: process.Host, PID: process.PID,
			Roles: strings.Join(process.Roles, ", "), Version: process.Version,
			Started: process.StartedAt, LastBeat: process.LastBeatAt,
			Lost:   report.Database.Now.Sub(process.LastBeatAt) > fleet.Lost,
			Skewed: skew.Abs() > maxSkew, Skew: skewWord(skew),
			Leads: report.Leader.ID == process.UID.String(),
		})
	}
	return rows
}

func partitionRow(partition fleet.Partition) operations.PartitionRow {
	rows := "not counted yet"
	if partition.Rows >= 0 {
		rows = ui.Number(int(partition.Rows))
	}
	return operations.PartitionRow{
		Table: partition.Table, Name: partition.Name, Size: size(partition.Bytes), Rows: rows,
	}
}

// size writes a number of bytes with a sensible unit.
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

// skewWord says how far a clock is ahead; behind is below zero.
func skewWord(skew time.Duration) string {
	if skew < 0 {
		return "-" + ui.Duration(-skew)
	}
	return ui.Duration(skew)
}
