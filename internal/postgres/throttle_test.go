package postgres_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/internal/postgres"
)

// A cheap value is read each time, a value that stays expensive once in fifty times its duration,
// and after an error it is read again at once.
func TestThrottledCache(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var cache postgres.ThrottledCache[string, int]
		reads := 0
		read := func(key string, took time.Duration, err error) int {
			value, got := cache.Get(key, func() (int, error) {
				<-time.After(took)
				reads++
				return reads, err
			})
			if !errors.Is(got, err) {
				t.Errorf("the error is %v, want %v", got, err)
			}
			return value
		}
		want := func(what string, got, want int) {
			t.Helper()
			if got != want {
				t.Errorf("%s: got the reading %d, want %d", what, got, want)
			}
		}
		want("quick", read("a", 49*time.Millisecond, nil), 1)
		want("quick again", read("a", 100*time.Millisecond, nil), 2)
		want("dear once", read("a", 100*time.Millisecond, nil), 3)
		<-time.After(4900 * time.Millisecond)
		want("dear twice, soon", read("a", 0, nil), 3)
		want("something else", read("b", 0, nil), 4)
		<-time.After(200 * time.Millisecond)
		want("dear twice, later", read("a", time.Hour, nil), 5)
		<-time.After(14 * time.Second)
		want("very dear, soon", read("a", 0, nil), 5)
		<-time.After(2 * time.Second)
		want("very dear, later", read("a", 0, nil), 6)
		want("after a quick one", read("a", 0, nil), 7)
		read("c", time.Second, errors.ErrUnsupported)
		want("after a failure", read("c", 0, nil), 9)
	})
}

// While one caller reads an expensive value, the others get the previous one.
func TestThrottledCacheWhileReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var cache postgres.ThrottledCache[int, int]
		reads := 0
		get := func() int {
			got, err := cache.Get(0, func() (int, error) {
				<-time.After(time.Second)
				reads++
				return reads, nil
			})
			if err != nil {
				t.Error(err)
			}
			return got
		}
		get()
		get()
		<-time.After(time.Minute)
		reader := make(chan int)
		go func() { reader <- get() }()
		synctest.Wait()
		if got := get(); got != 2 || reads != 2 {
			t.Errorf("beside a reader there is the reading %d of %d, want 2 of 2", got, reads)
		}
		if got := <-reader; got != 3 {
			t.Errorf("the reader got the reading %d, want 3", got)
		}
		if got := get(); got != 3 {
			t.Errorf("afterwards there is the reading %d, want 3", got)
		}
	})
}

// Many keys do not grow the cache without bound, and many callers do not conflict.
func TestThrottledCacheOfMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var cache postgres.ThrottledCache[int, int]
		var callers sync.WaitGroup
		for key := range 1000 {
			callers.Go(func() {
				got, err := cache.Get(key, func() (int, error) {
					<-time.After(time.Second)
					return key, nil
				})
				if got != key || err != nil {
					t.Errorf("key %d got %d (%v)", key, got, err)
				}
			})
		}
		callers.Wait()
	})
}

// TestPollThrottled: a scan that is slow twice in a row takes a fiftieth of the time. One that was
// slow once is repeated at once, and one that failed after as long as it took: during a failover
// its duration says nothing of its cost, and what it looks for must not wait for minutes.
func TestPollThrottled(t *testing.T) {
	t.Parallel()
	failed := errors.New("away")
	for name, test := range map[string]struct {
		took []time.Duration
		errs []error
		want []time.Duration // between the end of one scan and the next
	}{
		"quick": {
			took: []time.Duration{time.Millisecond, time.Millisecond},
			want: []time.Duration{time.Second, time.Second},
		},
		"dear": {
			took: []time.Duration{time.Second, 2 * time.Second, time.Second},
			want: []time.Duration{time.Second, 50 * time.Second, 50 * time.Second},
		},
		"waited once": {
			took: []time.Duration{time.Millisecond, 20 * time.Second, time.Millisecond},
			want: []time.Duration{time.Second, time.Second, time.Second},
		},
		"failed": {
			took: []time.Duration{10 * time.Second, 20 * time.Second, 20 * time.Second},
			errs: []error{failed, failed, nil},
			want: []time.Duration{10 * time.Second, 20 * time.Second, time.Second},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				var rests []time.Duration
				var ended time.Time
				looks := 0
				postgres.PollThrottled(ctx, "what is lost", func(context.Context) error {
					if looks > 0 {
						rests = append(rests, time.Since(ended))
					}
					if looks == len(test.took) {
						cancel()
						return nil
					}
					<-time.After(test.took[looks])
					ended = time.Now()
					looks++
					if len(test.errs) > 0 {
						return test.errs[looks-1]
					}
					return nil
				})
				if !slices.Equal(rests, test.want) {
					t.Errorf("rested for %v, want %v", rests, test.want)
				}
			})
		})
	}
}
