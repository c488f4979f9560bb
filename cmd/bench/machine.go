package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"drawbridge/internal/postgres"
)

// machine is where and when a run took place.
type machine struct {
	At       time.Time `json:"at"`
	Cores    int       `json:"cores"`
	CPU      string    `json:"cpu"`
	Go       string    `json:"go"`
	Postgres string    `json:"postgres"`
	Fsync    string    `json:"fsync"`
	// Load is the load average of the last minute before the run: what else the
	// machine was doing.
	Load string `json:"load"`
	// CommitMS is what a transaction takes that changes one row, the median.
	CommitMS float64 `json:"commit_ms"`
	// Stolen is the share of the processors, from 0 to 1, that other guests of the
	// same host had during the run while this one wanted them.
	Stolen float64 `json:"stolen"`
}

// String describes the machine in three lines.
func (m machine) String() string {
	return fmt.Sprintf("%s, %d cores (%s), load before the run %s\n"+
		"%s, Postgres %s beside it, fsync %s: one row changed and committed in %.2f ms\n"+
		"%.1f %% of the processors' time was stolen by other guests of the host",
		m.At.Format("2006-01-02 15:04 MST"), m.Cores, m.CPU, m.Load,
		m.Go, m.Postgres, m.Fsync, m.CommitMS, m.Stolen*100)
}

func describeMachine(ctx context.Context, c *cluster) (machine, error) {
	m := machine{
		At: time.Now().UTC(), Cores: runtime.GOMAXPROCS(0), CPU: cpuModel(), Go: runtime.Version(),
		Load: loadAverage(),
	}
	err := c.admin.QueryRowContext(ctx,
		`SELECT current_setting('server_version'), current_setting('fsync')`).
		Scan(&m.Postgres, &m.Fsync)
	if err != nil {
		return machine{}, fmt.Errorf("asking the server for its version: %w", err)
	}
	m.CommitMS, err = commitCost(ctx, c.admin)
	return m, err
}

// commitCost is the median of transactions that change one row.
func commitCost(ctx context.Context, db *postgres.DB) (float64, error) {
	const tries = 200
	if _, err := db.ExecContext(ctx, `CREATE TABLE cost (n integer)`); err != nil {
		return 0, fmt.Errorf("preparing the cost of a commit: %w", err)
	}
	took, err := drive(ctx, 1, tries, func(ctx context.Context, _, _ int) error {
		_, err := db.ExecContext(ctx, `INSERT INTO cost VALUES (1)`)
		return err
	})
	return milliseconds(took.quantile(0.5)), err
}

// cpuModel is the processor's name, "unknown" where the kernel does not say.
func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // without it, it is unknown
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// loadAverage is the kernel's, of the last minute.
func loadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg") // without it, it is unknown
	first, _, found := strings.Cut(string(text), " ")
	if !found {
		return "unknown"
	}
	return first
}
