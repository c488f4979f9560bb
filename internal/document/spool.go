package document

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// spool holds one file at a time while it is checked. It has no name on disk: whatever happens to
// the process, the system frees it.
type spool struct {
	file *os.File
	size int64
	// err is the first error of the disk. The checks read through libraries that would report it as a
	// malformed document.
	err error
}

// reset empties the spool for the next file.
func (s *spool) reset() error {
	s.size = 0
	if s.file != nil {
		return nil // what is left behind size is never read
	}
	file, err := os.CreateTemp("", "drawbridge-upload-*")
	if err != nil {
		return fmt.Errorf("creating upload spool: %w", err)
	}
	s.file = file
	if err := os.Remove(file.Name()); err != nil {
		return fmt.Errorf("creating upload spool: %w", err)
	}
	return nil
}

// Write appends, and leaves the same free space as the bucket does.
func (s *spool) Write(p []byte) (int, error) {
	if len(p) == 0 { // beyond the bound
		return 0, nil
	}
	if err := checkFreeSpace(os.TempDir(), int64(len(p))); err != nil {
		return 0, err
	}
	n, err := s.file.WriteAt(p, s.size)
	s.size += int64(n)
	return n, err
}

// ReadAt implements io.ReaderAt.
func (s *spool) ReadAt(p []byte, offset int64) (int, error) {
	n, err := s.file.ReadAt(p, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// content returns everything written since the last reset.
func (s *spool) content() *io.SectionReader { return io.NewSectionReader(s, 0, s.size) }

func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close() // nothing in it is needed any more
	}
}
