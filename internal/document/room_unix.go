//go:build unix

package document

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// keptFree is what a folder's file system keeps for others: often the database
// lies on the same one.
const keptFree = 256 << 20

// checkRoom refuses content for which there is no room. Its error wraps
// syscall.ENOSPC.
func (f *folder) checkRoom(size int64) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(f.root.Name(), &stat); err != nil {
		return nil //nolint:nilerr // who cannot ask finds out by writing
	}
	free := stat.Bavail * uint64(stat.Bsize)
	if free < uint64(size)+keptFree {
		return fmt.Errorf("%d MiB are free: %w", free>>20, syscall.ENOSPC)
	}
	return nil
}
