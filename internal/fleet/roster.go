package fleet

import "sync"

// Roster are the jobs that this process works, by their keys: those that it vouches
// for. The zero value is an empty one.
type Roster struct {
	mu   sync.Mutex
	jobs map[int64]bool // whether a run is under way, else it ended
}

// Work adds a job until the end of its run, which must be told once.
func (r *Roster) Work(id int64) (end func()) {
	r.set(id, true)
	return func() { r.set(id, false) }
}

func (r *Roster) set(id int64, runs bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.jobs == nil {
		r.jobs = map[int64]bool{}
	}
	r.jobs[id] = runs
}

// state tells whether a run of a job is under way, and whether there was one whose
// end the queue may still have to write.
func (r *Roster) state(id int64) (runs, ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	runs, known := r.jobs[id]
	return runs, known && !runs
}

// ended lists the jobs of runs that ended.
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

// forget removes jobs whose runs ended.
func (r *Roster) forget(ids []int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		if !r.jobs[id] {
			delete(r.jobs, id)
		}
	}
}
