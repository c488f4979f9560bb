package main

import (
	"context"
	"time"

	"github.com/google/uuid"
)

const (
	// throng is how many calls may be under way: more than the program lets in and
	// lets wait, so that those which are refused do not hold up the next.
	throng = 400
	// overload is how many times as many calls come as the program can answer.
	overload = 2
	// burst is how long the program takes them for one, in which a call may wait longer.
	burst = 3 * time.Second
)

// overload asks the real program for more than it can do, over HTTP by callers in a process
// of their own, and looks at the calls that it answers all the same.
func (b *bench) overload(ctx context.Context) (err error) {
	var open ends
	defer open.run(&err)
	n := b.sizes.door / 2
	d, err := b.openDoor(ctx, &open, false, warmUps+(1+2*overload)*n)
	if err != nil {
		return err
	}
	if _, _, err := d.draw(ctx, warmUps, 0); err != nil {
		return err
	}
	b.say("overload: %d calls by %d callers, then %d at %d times that rate",
		n, clients, 2*overload*n, overload)
	best, err := d.crowd(ctx, n, callTask{Callers: clients}, 0)
	if err != nil {
		return err
	}
	before, _, err := d.program.memory()
	if err != nil {
		return err
	}
	beside, err := d.crowd(ctx, 2*overload*n,
		callTask{Callers: throng, Rate: overload * best.rate(), Refusable: true}, burst)
	if err != nil {
		return err
	}
	_, after, err := d.program.memory()
	if err != nil {
		return err
	}
	line := row{
		Section: "twice the calls that it can answer", Name: "calls answered", Unit: "/s",
		Value: beside.rate(), Floor: best.rate(),
		FloorName: "as many as it can answer", Aim: "> 0.9x the floor",
	}
	b.report.add(line)
	line.Name = "calls answered"
	b.report.addTimes(line, beside, best, share{"p50", 0.5, ""}, share{"p99", 0.99, "< 500 ms"})
	line.Name, line.Unit, line.Aim = "memory at its most", "MiB", ""
	line.Value, line.Floor = after, before
	b.report.add(line)
	return nil
}

// crowd makes n calls and returns those that were answered, and what they took from the
// first to the last; those that began in the first moments are left out.
func (d *doorway) crowd(
	ctx context.Context, n int, task callTask, leftOut time.Duration,
) (timing, error) {
	uids := d.left[:n]
	d.left = d.left[n:]
	task.Base, task.Applications = "/api", uids
	told, err := d.callOutside(ctx, task)
	if err != nil {
		return timing{}, err
	}
	var answered timing
	var done []uuid.UUID
	var kept findings
	first := told.Began[0].Add(min(leftOut, told.Began[n-1].Sub(told.Began[0])/2))
	last := first
	for i, uid := range uids {
		if told.Refused[i] {
			continue
		}
		done = append(done, uid)
		kept.Began = append(kept.Began, told.Began[i])
		if told.Began[i].Before(first) {
			continue
		}
		answered.each = append(answered.each, told.Took[i])
		if end := told.Began[i].Add(told.Took[i]); end.After(last) {
			last = end
		}
	}
	answered.total = last.Sub(first)
	set := stageSet{house: d.house, targets: d.targets}
	if err := set.delivered(ctx, d.came+len(done)); err != nil {
		return timing{}, err
	}
	_, err = d.match(done, kept) // each that was answered has its webhook, and no other
	return answered, err
}
