package document

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"time"

	"drawbridge/internal/lending"
)

// attachedPolicy keeps a browser that displays a document despite the headers from running anything
// in it.
const attachedPolicy = "default-src 'none'; sandbox; frame-ancestors 'none'"

// downloadTimeout is enough for the largest file over a slow line.
const downloadTimeout = 10 * time.Minute

// Attach answers a request with a file, never to be shown in a browser. It calls note, which
// records the download, before anything is sent. Errors: NOT_FOUND for a file that is not in the
// bucket any more, and that of note.
func (s *Store) Attach(
	ctx context.Context, answer http.ResponseWriter, file File, note func() error,
) error {
	content, err := s.Open(ctx, file.Key)
	if errors.Is(err, fs.ErrNotExist) {
		return lending.NewError(lending.CodeNotFound,
			"The file is recorded, but no longer in the bucket. Ask the bucket's operator to restore it.").
			WithCause(err)
	}
	if err != nil {
		return fmt.Errorf("opening file %s: %w", file.UID, err)
	}
	defer content.Close()
	if err := note(); err != nil {
		return err
	}
	header := answer.Header()
	header.Set("Content-Security-Policy", attachedPolicy)
	header.Set("Content-Disposition", ContentDisposition(file.Name))
	header.Set("Content-Type", file.ContentType)
	header.Set("Content-Length", strconv.FormatInt(file.Size, 10))
	controller := http.NewResponseController(answer)
	// A writer without deadlines is a test's, without a connection.
	_ = controller.SetReadDeadline(time.Time{})
	_ = controller.SetWriteDeadline(time.Now().Add(downloadTimeout))
	answer.WriteHeader(http.StatusOK)
	if _, err := io.Copy(answer, content); err != nil {
		// The stated length shows the reader that the file is incomplete.
		return fmt.Errorf("sending file %s: %w", file.UID, err)
	}
	return nil
}
