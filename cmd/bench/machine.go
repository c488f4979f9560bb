package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// machine describes where and when a run took place.
type machine struct {
	At       time.Time `json:"at"`
	Cores    int       `json:"cores"`
	CPU      string    `json:"cpu"`
	Go       string    `json:"go"`
	Postgres string    `json:"postgres"`
	Fsync    string    `json:"fsync"`
	// Load is the load average of the last minute before the run, caused by other
	// work on the machine.
	Load float64 `json:"load"`
	// CommitMS is the median time of a transaction that changes one row.
	CommitMS float64 `json:"commit_ms"`
	// Stolen is the share of processor time, from 0 to 1, that other guests of the same host
	// used during the run while this one needed it.
	Stolen float64 `json:"stolen"`
}

// String describes the machine in three lines.
func (m machine) String() string {
	return fmt.Sprintf("%s, %d cores (%s), load before the run %.2f\n"+
		"%s, Postgres %s beside it, fsync %s: one row changed and committed in %.2f ms\n"+
		"%.1f %% of the processors' time was stolen by other guests of the host",
		m.At.Format("2006-01-02 15:04 MST"), m.Cores, m.CPU, m.Load,
		m.Go, m.Postgres, m.Fsync, m.CommitMS, m.Stolen*100)
}

func describeMachine(ctx context.Context, c *cluster) (machine, error) {
	m := machine{At: time.Now().UTC(), Cores: runtime.GOMAXPROCS(0), Go: runtime.Version()}
	kernel, err := procfs.NewDefaultFS()
	if err != nil {
		return m, fmt.Errorf("describing the machine: %w", err)
	}
	if infos, err := kernel.CPUInfo(); err == nil && len(infos) > 0 {
		m.CPU = infos[0].ModelName
	}
	if m.Load, err = loadAverage(); err != nil {
		return m, err
	}
	err = c.admin.QueryRowContext(ctx,
		`SELECT current_setting('server_version'), current_setting('fsync')`).
		Scan(&m.Postgres, &m.Fsync)
	if err != nil {
		return m, fmt.Errorf("asking the server for its version: %w", err)
	}
	if _, err := c.admin.ExecContext(ctx, `CREATE TABLE cost (n integer)`); err != nil {
		return m, fmt.Errorf("preparing the cost of a commit: %w", err)
	}
	took, err := drive(ctx, 1, 200, func(ctx context.Context, _, _ int) error {
		_, err := c.admin.ExecContext(ctx, `INSERT INTO cost VALUES (1)`)
		return err
	})
	m.CommitMS = milliseconds(took.quantile(0.5))
	return m, err
}

// loadAverage is the load average of the last minute.
func loadAverage() (float64, error) {
	kernel, err := procfs.NewDefaultFS()
	var load *procfs.LoadAvg
	if err == nil {
		load, err = kernel.LoadAvg()
	}
	if err != nil {
		return 0, fmt.Errorf("reading the load: %w", err)
	}
	return load.Load1, nil
}

// processors is how all processors together have spent their time so far.
func processors() (procfs.CPUStat, error) {
	kernel, err := procfs.NewDefaultFS()
	var stat procfs.Stat
	if err == nil {
		stat, err = kernel.Stat()
	}
	if err != nil {
		return procfs.CPUStat{}, fmt.Errorf("reading the processors' time: %w", err)
	}
	return stat.CPUTotal, nil
}

// wholeTime is the sum of all kinds of time, except guest time, which the others already
// include (proc_stat(5)).
func wholeTime(c procfs.CPUStat) float64 {
	return c.User + c.Nice + c.System + c.Idle + c.Iowait + c.IRQ + c.SoftIRQ + c.Steal
}

// clockTick is the unit in which Linux reports the processor time of processes.
const clockTick = 10 * time.Millisecond

// meter measures the processor time that a process and the server use. Unlike elapsed time,
// that hardly depends on other work on the machine.
type meter struct{ Process, Postmaster int }

// meter measures a process together with the server.
func (c *cluster) meter(process int) (meter, error) {
	text, err := os.ReadFile(filepath.Join(c.server.Folder(), "data", "postmaster.pid"))
	if err != nil {
		return meter{}, fmt.Errorf("looking for the server's process: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	postmaster, err := strconv.Atoi(line)
	if err != nil {
		return meter{}, fmt.Errorf("reading the server's process: %w", err)
	}
	return meter{Process: process, Postmaster: postmaster}, nil
}

// processorTime is the processor time that the two, including the server's ended children, have
// used so far.
func (m meter) processorTime() (time.Duration, error) {
	processes, err := procfs.AllProcs()
	if err != nil {
		return 0, fmt.Errorf("listing the processes: %w", err)
	}
	ticks := 0
	for _, process := range processes {
		stat, err := process.Stat()
		if err != nil {
			continue // it has ended, and the postmaster counts it among its children
		}
		if stat.PID == m.Process || stat.PID == m.Postmaster || stat.PPID == m.Postmaster {
			ticks += int(stat.UTime + stat.STime)
		}
		if stat.PID == m.Postmaster {
			ticks += stat.CUTime + stat.CSTime
		}
	}
	return time.Duration(ticks) * clockTick, nil
}

// clock measures how long n things take, how much processor time the two use, and how much all
// processes use.
func (m meter) clock(n int) (stop func() (timing, error), err error) {
	allBefore, err := processors()
	if err != nil {
		return nil, err
	}
	before, err := m.processorTime()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	return func() (timing, error) {
		took := timing{each: make([]time.Duration, n), total: time.Since(start)}
		after, err := m.processorTime()
		if err != nil {
			return timing{}, err
		}
		took.processor = after - before
		all, err := processors()
		took.busy = time.Duration((busyTime(all) - busyTime(allBefore)) * float64(time.Second))
		return took, err
	}, nil
}

// busyTime is the part of the whole time in which processors were busy.
func busyTime(c procfs.CPUStat) float64 { return wholeTime(c) - c.Idle - c.Iowait }

// clock measures this process together with the server.
func (b *bench) clock(n int) (stop func() (timing, error), err error) {
	m, err := b.cluster.meter(os.Getpid())
	if err != nil {
		return nil, err
	}
	return m.clock(n)
}
