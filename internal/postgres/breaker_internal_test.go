package postgres

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var errRefused = errors.New("the server refuses connections")

// TestBreakerSparesAServerThatRefuses has many callers try all the time while a server refuses them
// for ten seconds: it gets at most ten attempts a second where it refuses at once, and one where
// refusing takes a while; every caller gets an answer within about a second, and all connect soon
// after it accepts connections again.
func TestBreakerSparesAServerThatRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		took time.Duration
		most int
	}{{time.Millisecond, 100}, {50 * time.Millisecond, 40}, {900 * time.Millisecond, 6}} {
		synctest.Test(t, func(t *testing.T) {
			var b breaker
			var mu sync.Mutex
			begun := time.Now()
			heals := begun.Add(10 * time.Second)
			tries := 0
			var callers sync.WaitGroup
			for range 30 {
				callers.Go(func() {
					for {
						came := time.Now()
						err := b.connect(t.Context(), func() error {
							if !time.Now().Before(heals) {
								return nil
							}
							mu.Lock()
							tries++
							mu.Unlock()
							<-time.After(c.took)
							return errRefused
						})
						if waited := time.Since(came); waited > longestRest+2*c.took {
							t.Errorf("a caller waited for %s", waited)
						}
						if err == nil {
							if late := time.Since(heals); late > longestRest+c.took {
								t.Errorf("a caller came in %s after the server healed", late)
							}
							return
						}
						if !errors.Is(err, errRefused) {
							t.Errorf("a caller was told %v", err)
						}
					}
				})
			}
			callers.Wait()
			if most := 30 + c.most; tries > most {
				t.Errorf("%d tries that take %s, want %d at most", tries, c.took, most)
			}
			if !b.closed() {
				t.Error("the breaker is open")
			}
		})
	}
}

// TestBreakerPassesByWhatHangs tries again a second after an attempt that hangs, and at once after
// one whose caller gave up.
func TestBreakerPassesByWhatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b breaker
		_ = b.connect(t.Context(), func() error { return errRefused }) // opens the circuit
		<-time.After(longestRest)
		hangs := func(ctx context.Context, until time.Duration) {
			ctx, cancel := context.WithTimeout(ctx, until)
			go func() {
				defer cancel()
				_ = b.connect(ctx, func() error { // it only ends with its context
					<-ctx.Done()
					return ctx.Err()
				})
			}()
			synctest.Wait()
		}
		failing := func() time.Duration {
			began := time.Now()
			err := b.connect(t.Context(), func() error { return errRefused })
			if !errors.Is(err, errRefused) {
				t.Errorf("it ended with %v", err)
			}
			return time.Since(began)
		}
		hangs(t.Context(), time.Minute)
		if waited := failing(); waited != longestRest {
			t.Errorf("another waited for %s beside one that hangs", waited)
		}
		<-time.After(longestRest)
		hangs(t.Context(), longestRest/4)
		if waited := failing(); waited != longestRest/4 {
			t.Errorf("another waited for %s after one that gave up", waited)
		}
	})
}
