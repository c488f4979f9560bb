package outbox

import "time"

// PassBy has the next rounds begin at a place, as after some seconds, and looks beside them go
// back to another.
func (p *Publisher) PassBy(id, veryLate int64) {
	p.end.from = id
	p.end.late = mark{id, id, time.Now()}
	p.end.veryLate = mark{veryLate, veryLate, time.Now()}
}

// Looks beside the rounds.
var (
	ScanRecent = (*Publisher).scanRecent
	ScanAll    = (*Publisher).scanAll
)
