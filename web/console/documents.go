package console

import (
	"context"
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
	"drawbridge/internal/postgres"
	"drawbridge/views/ui"
)

// documentPolicy keeps a browser that shows a document in spite of everything
// from running anything in it.
const documentPolicy = "default-src 'none'; sandbox; frame-ancestors 'none'"

// downloadTimeout is what the largest file may take over a slow line.
const downloadTimeout = 10 * time.Minute

// document downloads one file of a completion certificate. It is never shown
// in the browser, and every download is in the audit log before it begins.
func (c *Console) document(ctx echo.Context) error {
	uid, err := pathUID(ctx)
	if err != nil {
		return err
	}
	fileUID, err := uuid.Parse(ctx.Param("file"))
	if err != nil {
		return lending.NewError(lending.CodeNotFound, "%.60q is not the id of a file",
			ctx.Param("file"))
	}
	request := ctx.Request()
	file, err := c.Loans.File(request.Context(), uid, fileUID)
	if err != nil {
		return err
	}
	content, err := c.Documents.Open(request.Context(), file.Key)
	if errors.Is(err, fs.ErrNotExist) {
		return lending.NewError(lending.CodeNotFound,
			"The file is recorded, but is not in the bucket any more. Ask whoever keeps the bucket.").
			WithCause(err)
	}
	if err != nil {
		return fmt.Errorf("opening file %s: %w", fileUID, err)
	}
	defer content.Close()
	if err := c.auditDownload(ctx, uid, file); err != nil {
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

func (c *Console) auditDownload(ctx echo.Context, uid uuid.UUID, file document.File) error {
	return c.inTx(ctx, func(request context.Context, tx *postgres.Tx) error {
		return c.Operators.Audit(request, tx, operator.Entry{
			Actor: currentUser(ctx).Email, Address: ctx.RealIP(), Action: "document.download",
			SubjectKind: "application", Subject: uid.String(),
			After: map[string]any{
				"file_uid": file.UID, "name": ui.Visible(file.Name), "sha256": file.SHA256,
			},
		})
	})
}
