package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
)

const (
	// maxInFlight is how many requests may be under way: more than the program admits and lets
	// wait, so that refused requests do not hold up the next ones.
	maxInFlight = 400
	// overload is how many times as many requests are made as the program can answer.
	overload = 2
	// burst is how long the program treats the load as a burst, during which requests may wait longer.
	burst = 3 * time.Second
)

// lightRate is how many requests a second the client outside the crowd makes.
const lightRate = 4

// overload twice sends the real program more requests than it can answer, over HTTP from a
// separate process, and measures those that it still answers, those of a client that sends few,
// and the memory.
func (b *bench) overload(ctx context.Context, open *cleanup) error {
	n := b.sizes.door / 2
	crowded := overload * n
	d, err := b.openDoor(ctx, open, false, warmUps+n+2*(crowded+b.sizes.beside))
	if err != nil {
		return err
	}
	var other partner.Issued
	err = d.harness.DB.InTx(ctx, func(tx *postgres.Tx) (err error) {
		other, err = d.harness.addClient(ctx, tx, d.owner.partner)
		return err
	})
	if err != nil {
		return err
	}
	if _, _, err := d.draw(ctx, warmUps, 0); err != nil {
		return err
	}
	b.say("overload: %d calls by %d callers, then twice %d at %d times that rate",
		n, clients, crowded, overload)
	alone, err := d.crowd(ctx, 0, callTask{Applications: d.left.take(n), Callers: clients})
	if err != nil {
		return err
	}
	best := alone[0]
	var beside, few timing
	var memory [2]float64
	for round := range memory {
		found, err := d.crowd(ctx, burst, callTask{
			Applications: d.left.take(crowded), Callers: maxInFlight, Rate: overload * best.rate(),
			Refusable: true,
		}, callTask{
			Client: other, Applications: d.left.take(b.sizes.beside), Callers: 1, Rate: lightRate,
		})
		if err != nil {
			return err
		}
		beside, few = beside.join(found[0]), few.join(found[1])
		if _, memory[round], err = d.program.memory(); err != nil {
			return err
		}
	}
	line := row{
		Section: "twice the calls that it can answer", Name: "calls answered", Unit: "/s",
		Value: beside.rate(), Floor: best.rate(),
		FloorName: "as many as it can answer", Aim: "> 0.9x the floor",
	}
	b.report.add(line)
	line.Name = "calls answered"
	b.report.addTimes(line, beside, best, share{"p50", 0.5, ""}, share{"p99", 0.99, "< 500 ms"})
	line.Name = fmt.Sprintf("another client's %d a second, all answered", lightRate)
	b.report.addTimes(line, few, best, share{"p50", 0.5, ""}, share{"slowest", 1, "< 500 ms"})
	line.Name, line.Unit, line.Aim = "memory at its most", "MiB", "< 1.1x the floor"
	line.Value, line.Floor, line.FloorName = memory[1], memory[0], "after half of them"
	b.report.add(line)
	return nil
}

// crowd makes the requests of several tasks at once and returns those of each that were
// answered, without those that began in the first moments.
func (d *doorway) crowd(
	ctx context.Context, leftOut time.Duration, tasks ...callTask,
) ([]timing, error) {
	found := make([]findings, len(tasks))
	_, err := drive(ctx, len(tasks), len(tasks), func(ctx context.Context, _, i int) (err error) {
		tasks[i].Base = "/api"
		found[i], err = d.callSeparately(ctx, tasks[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	answered := make([]timing, len(tasks))
	var done []uuid.UUID
	var kept findings
	for i, task := range tasks {
		answered[i] = found[i].answered(leftOut)
		for j, uid := range task.Applications {
			if !found[i].Refused[j] {
				done, kept.Began = append(done, uid), append(kept.Began, found[i].Began[j])
			}
		}
	}
	set := stageSet{harness: d.harness, targets: d.targets}
	if err := set.delivered(ctx, d.came+len(done)); err != nil {
		return nil, err
	}
	_, err = d.match(done, kept) // exactly the answered requests have webhooks
	return answered, err
}

// answered are the times of answered requests; those that began in the first moments are left
// out, or those of the first half if there would be hardly any others.
func (f findings) answered(leftOut time.Duration) timing {
	var t timing
	first := f.Began[0].Add(min(leftOut, f.Began[len(f.Began)-1].Sub(f.Began[0])/2))
	last := first
	for i, began := range f.Began {
		if f.Refused[i] || began.Before(first) {
			continue
		}
		t.each = append(t.each, f.Took[i])
		if end := began.Add(f.Took[i]); end.After(last) {
			last = end
		}
	}
	t.total = last.Sub(first)
	return t
}
