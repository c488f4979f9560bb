package delivery

import (
	"testing"
	"time"
)

func TestNoticesTakeTurns(t *testing.T) {
	t.Parallel()
	var n notifyThrottle
	now := time.Now()
	first := n.take(now, notifyPause)
	if !first.taken {
		t.Error("the first may not tell")
	}
	if n.take(now.Add(notifyPause-time.Microsecond), notifyPause).taken {
		t.Error("the second may tell too soon")
	}
	n.giveBack(first)
	now = now.Add(time.Microsecond)
	second := n.take(now, notifyPause)
	if !second.taken {
		t.Error("a turn that was given back is lost")
	}
	n.giveBack(first) // it is the second's now
	if n.take(now.Add(time.Millisecond), notifyPause).taken {
		t.Error("a turn was given back by another than its owner")
	}
	if !n.take(now.Add(notifyPause), notifyPause).taken {
		t.Error("the next may not tell when the pause is over")
	}
}
