package processes

import (
	"slices"
	"sync"
	"time"
)

// Roster are the jobs that this process works, by their keys: those that it vouches
// for. The zero value is an empty one.
type Roster struct {
	mu     sync.Mutex
	jobs   map[int64]work
	broken []fetch
}

// work is the last run of a job here.
type work struct {
	// began is when the queue gave it.
	began time.Time
	// runs tells that it is under way, else it ended.
	runs bool
}

// fetch is one whose answer was lost.
type fetch struct {
	queue       string
	from, until time.Time
}

// fetchSlack is by how much the clock of this process may differ from the database's, by
// which jobs are taken.
const fetchSlack = time.Second

// Work adds a job that the queue gave at that time until the end of its run, which must be
// told once.
func (r *Roster) Work(id int64, began time.Time) (end func()) {
	r.set(id, work{began, true})
	return func() { r.set(id, work{began, false}) }
}

// Broke notes that a fetch was made in that time, by the database's clock, whose answer was
// lost. A process makes one at a time of a queue, so what the queue gave it meanwhile it never
// heard of.
func (r *Roster) Broke(queue string, from, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	again := slices.IndexFunc(r.broken, func(old fetch) bool {
		return old.queue == queue && !old.until.Before(from)
	})
	if again >= 0 { // as while the database is away
		r.broken[again].until = until.Add(fetchSlack)
		return
	}
	r.broken = slices.DeleteFunc(r.broken, func(old fetch) bool {
		return old.until.Before(from.Add(-2 * Lost)) // strays of that time have gone back
	})
	r.broken = append(r.broken, fetch{queue, from.Add(-fetchSlack), until.Add(fetchSlack)})
}

// broke tells whether a job was taken by a fetch whose answer was lost.
func (r *Roster) broke(queue string, at time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.broken, func(lost fetch) bool {
		return lost.queue == queue && !at.Before(lost.from) && !at.After(lost.until)
	})
}

func (r *Roster) set(id int64, now work) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.jobs == nil {
		r.jobs = map[int64]work{}
	}
	r.jobs[id] = now
}

// Works tells whether a run of a job is under way.
func (r *Roster) Works(id int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.jobs[id].runs
}

// state tells whether a run of a job is under way, and whether the one that the queue gave at
// that time has ended, which the queue may still have to write.
func (r *Roster) state(id int64, at time.Time) (runs, ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.jobs[id]
	return last.runs, !last.runs && last.began.Equal(at)
}

func (r *Roster) ended() []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []int64
	for id, last := range r.jobs {
		if !last.runs {
			ids = append(ids, id)
		}
	}
	return ids
}

func (r *Roster) forget(ids []int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		if !r.jobs[id].runs {
			delete(r.jobs, id)
		}
	}
}
