package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// start measures how long the real program takes from its start to the line that
// says it is ready, on a database with data, beside printing its version.
func (b *bench) start(ctx context.Context) error {
	b.say("start: building the program")
	p, err := b.program(ctx)
	if err != nil {
		return err
	}
	if _, err := p.demo(ctx); err != nil {
		return err
	}
	var ready, floor timing
	for range b.sizes.starts {
		began := time.Now()
		if err := p.serve(ctx); err != nil {
			return err
		}
		ready.each = append(ready.each, time.Since(began))
		if err := p.stop(); err != nil {
			return err
		}
		began = time.Now()
		if err := p.command(ctx, "version").Run(); err != nil {
			return fmt.Errorf("asking the program for its version: %w", err)
		}
		floor.each = append(floor.each, time.Since(began))
	}
	for _, share := range []struct {
		name string
		q    float64
		aim  string
	}{{"p50", 0.5, ""}, {"slowest", 1, "< 1000 ms"}} {
		b.report.add(row{
			Section: "start on an existing database",
			Name:    fmt.Sprintf("to the ready line, %s", share.name), Unit: "ms",
			Value: milliseconds(ready.quantile(share.q)), Floor: milliseconds(floor.quantile(share.q)),
			FloorName: "printing its version", Aim: share.aim,
		})
	}
	return nil
}

// program gives the real program, which it builds the first time, a new database
// and a folder to run in.
func (b *bench) program(ctx context.Context) (*program, error) {
	url, err := b.cluster.newDatabase(ctx)
	if err != nil {
		return nil, err
	}
	p := &program{
		binary: filepath.Join(b.cluster.folder, "drawbridge"), url: url,
		folder: filepath.Join(b.cluster.folder, fmt.Sprintf("program_%d", b.cluster.made)),
	}
	if err := os.MkdirAll(p.folder, 0o750); err != nil {
		return nil, fmt.Errorf("making the program's folder: %w", err)
	}
	if _, err := os.Stat(p.binary); err == nil {
		return p, nil
	}
	err = p.build(ctx)
	return p, err
}
