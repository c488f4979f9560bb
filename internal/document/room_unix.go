//go:build unix

package document

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// A folder's file system keeps keptFree for others, or a keptShare of its size if
// that is less: often the database lies on the same one.
const (
	keptFree  = 256 << 20
	keptShare = 20
)

// checkRoom refuses content for which there is no room. Its error wraps
// syscall.ENOSPC.
func (f *folder) checkRoom(size int64) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(f.root.Name(), &stat); err != nil {
		return nil //nolint:nilerr // who cannot ask finds out by writing
	}
	block := uint64(stat.Bsize)
	free, kept := stat.Bavail*block, min(keptFree, stat.Blocks*block/keptShare)
	if free < uint64(size)+kept {
		return fmt.Errorf("%d MiB are free: %w", free>>20, syscall.ENOSPC)
	}
	return nil
}
