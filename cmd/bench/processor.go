package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
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

// stolenClock measures which share of the processors the host gave to others.
func stolenClock() (stop func() (float64, error), err error) {
	stolen, all, err := hostTime()
	if err != nil {
		return nil, err
	}
	return func() (float64, error) {
		stolenAfter, allAfter, err := hostTime()
		return float64(stolenAfter-stolen) / float64(max(allAfter-all, 1)), err
	}, nil
}

// hostTime is the time of all processors that was stolen and the whole of it, in
// ticks since the machine's start.
func hostTime() (stolen, all int64, err error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, fmt.Errorf("reading the processors' time: %w", err)
	}
	return stealOf(string(text))
}

// stealOf reads the first line of /proc/stat: user, nice, system, idle, waiting,
// interrupts, soft interrupts and stolen; what follows is in the first two already
// (proc_stat(5)).
func stealOf(text string) (stolen, all int64, err error) {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	const first, steal = 1, 8
	if len(fields) <= steal {
		return 0, 0, fmt.Errorf("the processors' time is not as expected: %q", line)
	}
	for at := first; at <= steal; at++ {
		n, err := strconv.ParseInt(fields[at], 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("the processors' time is not as expected: %q", line)
		}
		all += n
		stolen = n
	}
	return stolen, all, nil
}
