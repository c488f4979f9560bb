package heap_test

import (
	"runtime/debug"
	"testing"

	"drawbridge/internal/heap"
)

// setting reads Go's setting, which is only possible by replacing it.
func setting() int {
	now := debug.SetGCPercent(100)
	debug.SetGCPercent(now)
	return now
}

//nolint:paralleltest // the environment and the heap are the whole process's
func TestLoosenObeysTheEnvironment(t *testing.T) {
	before := setting()
	t.Cleanup(func() { debug.SetGCPercent(before) })
	t.Setenv("GOGC", "50")
	debug.SetGCPercent(50)
	if heap.Loosen(); setting() != 50 {
		t.Errorf("GOGC=50 became %d", setting())
	}
	t.Setenv("GOGC", "")
	if heap.Loosen(); setting() <= 100 {
		t.Errorf("without GOGC the heap grows by %d percent", setting())
	}
}

// TestHeapGrowsLessWhereMoreLives checks the growth for heaps of several sizes.
func TestHeapGrowsLessWhereMoreLives(t *testing.T) {
	t.Parallel()
	for living, want := range map[uint64]int{0: 300, 20 << 20: 180, 40 << 20: 40, 200 << 20: 25} {
		if got := heap.Percent(living); got != want {
			t.Errorf("a heap of %d MiB grows by %d percent, want %d", living>>20, got, want)
		}
	}
}
