package outbox

import "time"

// PassBy has the next rounds begin at a place, as after some seconds, and looks beside them go
// back to another.
func (p *Publisher) PassBy(place, veryLate int64) {
	p.end.from = place
	p.end.late = mark{place, place, time.Now()}
	p.end.veryLate = mark{veryLate, veryLate, time.Now()}
}

// Looks beside the rounds.
var (
	LookNear   = (*Publisher).lookNear
	LookBehind = (*Publisher).lookBehind
)
