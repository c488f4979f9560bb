// Package heap decides how often the process's memory is collected.
package heap

import (
	"os"
	"runtime/debug"
)

// growth is how much is allocated between two collections, in percent of what
// lives.
const growth = 300

// Loosen lets the heap grow to four times what lives in it before it is collected,
// where Go's own setting is twice; GOGC in the environment still decides. Little
// lives here, some 20 MiB under load, so that at twice the collections would come so
// often that they take a sixth of the program's processor time, and the calls
// wait for them.
func Loosen() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(growth)
	}
}
