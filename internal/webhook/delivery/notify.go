package delivery

import (
	"sync/atomic"
	"time"
)

// notifyPause is the least time between two notifications of the queue, as the
// queue's own client has it: the commit of a notification waits for that of any
// other, so not every transaction may have one.
const notifyPause = 5 * time.Millisecond

// stirPause is the same for the feed, whose publisher looks again by itself about as soon.
const stirPause = 25 * time.Millisecond

// epoch is before any notice. The time since then is that of the monotonic clock,
// which goes on when the machine's clock is set back.
var epoch = time.Now().Add(-time.Second)

// queueNotification tells the queue's workers that a job came in.
var queueNotification = `{"queue": "` + Queue + `"}`

// notifyThrottle take turns in notifying the queue of new jobs.
type notifyThrottle struct {
	// last is when the last one was sent, in microseconds since the epoch.
	last atomic.Int64
}

// notifyTurn is the right to tell, which others have to wait for.
type notifyTurn struct {
	taken    bool
	at, last int64
}

// take asks for a turn, which is to be had once a pause.
func (n *notifyThrottle) take(now time.Time, pause time.Duration) notifyTurn {
	turn := notifyTurn{at: now.Sub(epoch).Microseconds(), last: n.last.Load()}
	turn.taken = turn.at-turn.last >= pause.Microseconds() &&
		n.last.CompareAndSwap(turn.last, turn.at)
	return turn
}

// giveBack lets the next one tell, because this one had nothing to tell.
func (n *notifyThrottle) giveBack(turn notifyTurn) {
	if turn.taken {
		n.last.CompareAndSwap(turn.at, turn.last)
	}
}
