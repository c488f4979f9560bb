// Package heap controls how often the process's memory is collected.
package heap

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// usual is the smallest heap size at which it is collected, and growth is by how much it grows
	// where more is live, in percent.
	usual, growth = 56 << 20, 25
	// most is the largest growth in percent.
	most = 300
)

// live is the name of the metric of the bytes that were live at the last collection.
const live = "/gc/heap/live:bytes"

// Loosen lets the heap grow to 56 MiB before it is collected, where Go's default is twice the live
// bytes; GOGC in the environment overrides it. Little is live here, some 20 MiB under load, so that
// with Go's default the collections would take a sixth of the program's processor time, and
// requests would wait for them. Where much is live, as while many clients do not read, the heap
// grows by a quarter.
func Loosen() {
	if os.Getenv("GOGC") == "" {
		tune(new(cycle))
	}
}

// cycle is an object without references, so that each collection finds it.
type cycle struct{ _ [16]byte }

// tune sets the growth for the next collection, and runs again after it.
func tune(c *cycle) {
	sample := []metrics.Sample{{Name: live}}
	metrics.Read(sample)
	debug.SetGCPercent(percent(sample[0].Value.Uint64()))
	runtime.SetFinalizer(c, tune)
}

// percent returns the growth after which the heap is collected.
func percent(living uint64) int {
	living = max(living, 1)
	room := uint64(0)
	if living < usual {
		room = (usual - living) * 100 / living
	}
	return int(min(max(room, growth), most))
}
