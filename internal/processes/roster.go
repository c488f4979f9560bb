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
	jobs   map[int64]bool // whether a run is under way, else it ended
	broken []fetch
}

// fetch is one whose answer was lost.
type fetch struct {
	queue       string
	from, until time.Time
}

// fetchSlack is by how much the clock of this process may differ from the database's, by
// which jobs are taken.
const fetchSlack = time.Second

// Work adds a job until the end of its run, which must be told once.
func (r *Roster) Work(id int64) (end func()) {
	r.set(id, true)
	return func() { r.set(id, false) }
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

func (r *Roster) set(id int64, runs bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.jobs == nil {
		r.jobs = map[int64]bool{}
	}
	r.jobs[id] = runs
}

// Works tells whether a run of a job is under way.
func (r *Roster) Works(id int64) bool {
	runs, _ := r.state(id)
	return runs
}

// state tells whether a run of a job is under way, and whether there was one whose
// end the queue may still have to write.
func (r *Roster) state(id int64) (runs, ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	runs, known := r.jobs[id]
	return runs, known && !runs
}

func (r *Roster) ended() []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []int64
	for id, runs := range r.jobs {
		if !runs {
			ids = append(ids, id)
		}
	}
	return ids
}

func (r *Roster) forget(ids []int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		if !r.jobs[id] {
			delete(r.jobs, id)
		}
	}
}
