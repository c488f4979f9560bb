package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// clockTick is the unit in which Linux tells of other processes' time.
const clockTick = 10 * time.Millisecond

// processorTime is what this process and the server have used of the processors
// so far. Unlike the time on the clock it hardly depends on what else the machine
// does, and on a busy machine it is the figure to look at.
func (c *cluster) processorTime() (time.Duration, error) {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return 0, fmt.Errorf("reading the own processor time: %w", err)
	}
	used := time.Duration(own.Utime.Nano() + own.Stime.Nano())
	text, err := os.ReadFile(filepath.Join(c.server.Folder(), "data", "postmaster.pid"))
	if err != nil {
		return 0, fmt.Errorf("looking for the server's process: %w", err)
	}
	postmaster, _, _ := strings.Cut(string(text), "\n")
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, fmt.Errorf("listing the processes: %w", err)
	}
	for _, path := range paths {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended, and the postmaster counts it among its children
		}
		used += serverTime(path, string(stat), postmaster)
	}
	return used, nil
}

// serverTime is the time of a process that is the postmaster, with its children
// that have ended, or a child of it, and else 0. A stat line goes on after the
// name, which may hold anything, in brackets (proc_pid_stat(5)).
func serverTime(path, stat, postmaster string) time.Duration {
	_, rest, _ := strings.Cut(stat, ") ")
	fields := strings.Fields(rest)
	const parent, user, system, endedUser, endedSystem = 1, 11, 12, 13, 14
	if len(fields) <= endedSystem {
		return 0
	}
	counted := []int{user, system}
	switch postmaster {
	case filepath.Base(filepath.Dir(path)):
		counted = append(counted, endedUser, endedSystem)
	case fields[parent]:
	default:
		return 0
	}
	var ticks int64
	for _, at := range counted {
		n, err := strconv.ParseInt(fields[at], 10, 64)
		if err == nil {
			ticks += n
		}
	}
	return time.Duration(ticks) * clockTick
}

// clock measures how long something takes, and how much of the processors.
func (b *bench) clock(n int) (stop func() (timing, error), err error) {
	before, err := b.cluster.processorTime()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	return func() (timing, error) {
		took := timing{each: make([]time.Duration, n), total: time.Since(start)}
		after, err := b.cluster.processorTime()
		took.processor = after - before
		return took, err
	}, nil
}

// stolenClock measures which share of the processors, from 0 to 1, the host gave to
// others.
func stolenClock() (stop func() (float64, error), err error) {
	before, err := allProcessors()
	if err != nil {
		return nil, err
	}
	return func() (float64, error) {
		after, err := allProcessors()
		stolen, all := after.Steal-before.Steal, wholeTime(after)-wholeTime(before)
		if err != nil || all <= 0 {
			return 0, err
		}
		return stolen / all, nil
	}, nil
}

// allProcessors is what the machine's processors did since its start, in seconds.
func allProcessors() (procfs.CPUStat, error) {
	kernel, err := procfs.NewDefaultFS()
	if err != nil {
		return procfs.CPUStat{}, fmt.Errorf("reading the processors' time: %w", err)
	}
	stat, err := kernel.Stat()
	if err != nil {
		return procfs.CPUStat{}, fmt.Errorf("reading the processors' time: %w", err)
	}
	return stat.CPUTotal, nil
}

// wholeTime is the sum of all kinds of time; that of guests is among the others
// already (proc_stat(5)).
func wholeTime(c procfs.CPUStat) float64 {
	return c.User + c.Nice + c.System + c.Idle + c.Iowait + c.IRQ + c.SoftIRQ + c.Steal
}
