package processes

import (
	"slices"
	"sync"
	"time"
)

// Roster holds the jobs that this process works, by key: those it vouches for. The zero value is
// empty.
type Roster struct {
	mu          sync.Mutex
	jobs        map[int64]work
	lostFetches []fetch
}

// work is the last run of a job here.
type work struct {
	// began is when the queue handed it out.
	began time.Time
	// runs reports that the run is under way; otherwise it has ended.
	runs bool
}

// fetch is a fetch whose result was lost.
type fetch struct {
	queue       string
	from, until time.Time
}

// fetchSlack is how far the clock of this process may differ from the database's, which sets the
// times at which jobs are taken.
const fetchSlack = time.Second

// Work adds a job that the queue handed out at that time, until the returned function is called,
// once, at the end of its run.
func (r *Roster) Work(id int64, began time.Time) (end func()) {
	r.set(id, work{began, true})
	return func() { r.set(id, work{began, false}) }
}

// FetchLost records that the result of a fetch between these times, by the database's clock, was
// lost. A process fetches once at a time from a queue, so it has not received whatever the queue
// handed out to it meanwhile.
func (r *Roster) FetchLost(queue string, from, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	again := slices.IndexFunc(r.lostFetches, func(old fetch) bool {
		return old.queue == queue && !old.until.Before(from)
	})
	if again >= 0 { // as happens while the database is away
		r.lostFetches[again].until = until.Add(fetchSlack)
		return
	}
	r.lostFetches = slices.DeleteFunc(r.lostFetches, func(old fetch) bool {
		return old.until.Before(from.Add(-2 * Lost)) // its stray jobs have been handed back by now
	})
	r.lostFetches = append(r.lostFetches, fetch{queue, from.Add(-fetchSlack), until.Add(fetchSlack)})
}

// inLostFetch reports whether a job was taken by a fetch whose result was lost.
func (r *Roster) inLostFetch(queue string, at time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.lostFetches, func(lost fetch) bool {
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

// Works reports whether a run of a job is under way.
func (r *Roster) Works(id int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.jobs[id].runs
}

// state reports whether a run of a job is under way, and whether the run that the queue handed out
// at that time has ended, which the queue may not have written yet.
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
