package applications

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/document"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/views/ui"
	"drawbridge/web/console/page"
)

// documentPolicy keeps a browser that shows a document in spite of everything
// from running anything in it.
const documentPolicy = "default-src 'none'; sandbox; frame-ancestors 'none'"

// downloadTimeout is what the largest file may take over a slow line.
const downloadTimeout = 10 * time.Minute

// document downloads one file of a completion certificate. It is never shown
// in the browser, and every download is in the audit log before it begins.
func (f *Feature) document(ctx echo.Context) error {
	uid, err := page.UID(ctx)
	if err != nil {
		return err
	}
	fileUID, err := uuid.Parse(ctx.Param("file"))
	if err != nil {
		return lending.NewError(lending.CodeNotFound, "%.60q is not the id of a file",
			ctx.Param("file"))
	}
	request := ctx.Request()
	file, err := f.Loans.File(request.Context(), uid, fileUID)
	if err != nil {
		return err
	}
	content, err := f.Documents.Open(request.Context(), file.Key)
	if errors.Is(err, fs.ErrNotExist) {
		return lending.NewError(lending.CodeNotFound,
			"The file is recorded, but is not in the bucket any more. Ask whoever keeps the bucket.").
			WithCause(err)
	}
	if err != nil {
		return fmt.Errorf("opening file %s: %w", fileUID, err)
	}
	defer content.Close()
	err = f.Record(ctx, operator.Entry{
		Action: "document.download", SubjectKind: "application", Subject: uid.String(),
		After: map[string]any{
			"file_uid": file.UID, "name": ui.Visible(file.Name), "sha256": file.SHA256,
		},
	})
	if err != nil {
		return err
	}
	header := ctx.Response().Header()
	header.Set("Content-Security-Policy", documentPolicy)
	header.Set("Content-Disposition", document.ContentDisposition(file.Name))
	header.Set("Content-Type", file.ContentType)
	header.Set("Content-Length", strconv.FormatInt(file.Size, 10))
	controller := http.NewResponseController(ctx.Response().Writer)
	// A writer without deadlines is that of a test without a connection.
	_ = controller.SetReadDeadline(time.Time{})
	_ = controller.SetWriteDeadline(time.Now().Add(downloadTimeout))
	ctx.Response().WriteHeader(http.StatusOK)
	if _, err := io.Copy(ctx.Response(), content); err != nil {
		// The stated length tells the browser that the file is not whole.
		return fmt.Errorf("sending file %s: %w", fileUID, err)
	}
	return nil
}
