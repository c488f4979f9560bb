package outbox

import "time"

// PassBy makes the next passes begin at an outbox id, as after some seconds, and the
// scans alongside them at another.
func (p *Publisher) PassBy(id, veryLate int64) {
	p.horizon.from = id
	p.horizon.late = mark{id, id, time.Now()}
	p.horizon.veryLate = mark{veryLate, veryLate, time.Now()}
}

// The scans alongside the passes.
var (
	ScanRecent = (*Publisher).scanRecent
	ScanAll    = (*Publisher).scanAll
)
