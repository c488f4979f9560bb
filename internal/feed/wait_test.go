package feed_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/feed"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
)

// TestAThousandWait makes as many requests wait as may: one more is answered at once, all
// are once none may wait any more, and none of them holds a connection meanwhile.
func TestAThousandWait(t *testing.T) {
	t.Parallel()
	service := feed.New(pgtest.New(t))
	running := sync.WaitGroup{}
	running.Go(func() { service.Run(t.Context()) })
	const room = 1000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	ask := func() feed.Page {
		page, err := service.Follow(t.Context(), feed.Query{
			MerchantUIDs: []uuid.UUID{uuid.New()}, Limit: 100,
		}, time.Hour, func() {})
		if err != nil {
			t.Error(err)
		}
		return page
	}
	var waiting sync.WaitGroup
	for range room {
		waiting.Go(func() { ask() })
	}
	waittest.Until(t, "as many wait as there is room for", func() bool {
		return service.Waiting() >= room
	})
	if page := ask(); len(page.Events) > 0 {
		t.Errorf("one too many got %+v", page)
	}
	if used := service.DB.Stats().InUse; used > 1 {
		t.Errorf("%d connections are in use while all wait", used)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapInuse+after.StackInuse) -
		int64(before.HeapInuse+before.StackInuse); grown > 100<<20 {
		t.Errorf("a thousand who wait hold %d MiB", grown>>20)
	}
	service.Release()
	waiting.Wait()
	if left := service.Waiting(); left > 0 {
		t.Errorf("%d still wait", left)
	}
}
