package faults

import (
	"context"
	"sync"
	"sync/atomic"
)

// lives are loans that several callers take, one after another, to their last draw.
type lives struct {
	stop    context.CancelFunc
	callers sync.WaitGroup
	begun   atomic.Int64
}

func (b *borrowers) startLives() *lives {
	going, stop := context.WithCancel(b.t.Context())
	l := &lives{stop: stop}
	for range callers {
		l.callers.Go(func() {
			for going.Err() == nil {
				if err := b.live(int(l.begun.Add(1))); err != nil {
					b.t.Error(err)
					return
				}
			}
		})
	}
	return l
}

// end waits until every loan has reached its last draw, and returns how many there were.
func (l *lives) end() int {
	l.stop()
	l.callers.Wait()
	return int(l.begun.Load())
}
