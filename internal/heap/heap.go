// Package heap decides how often the process's memory is collected.
package heap

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// usual is how large the heap is at least when it is collected, and growth by how
	// much it has grown then where more lives, in percent.
	usual, growth = 56 << 20, 25
	// most is the most in percent.
	most = 300
)

// live is the name of the metric of what lived at the last collection, in bytes.
const live = "/gc/heap/live:bytes"

// Loosen lets the heap grow to 56 MiB before it is collected, where Go's own setting
// is twice what lives in it; GOGC in the environment still decides. Little lives
// here, some 20 MiB under load, so that with Go's setting the collections would come
// so often that they take a sixth of the program's processor time, and the calls
// wait for them. Where much lives, as while many clients do not read, it grows by a
// quarter.
func Loosen() {
	if os.Getenv("GOGC") == "" {
		tune(new(cycle))
	}
}

// cycle is what nobody refers to, so that each collection finds it.
type cycle struct{ _ [16]byte }

// tune sets the growth for the next collection, and is called again after it.
func tune(c *cycle) {
	sample := []metrics.Sample{{Name: live}}
	metrics.Read(sample)
	debug.SetGCPercent(percent(sample[0].Value.Uint64()))
	runtime.SetFinalizer(c, tune)
}

// percent is the growth after which the heap is collected.
func percent(living uint64) int {
	living = max(living, 1)
	room := uint64(0)
	if living < usual {
		room = (usual - living) * 100 / living
	}
	return int(min(max(room, growth), most))
}
