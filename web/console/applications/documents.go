package applications

import (
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/views/ui"
	"drawbridge/web/console/page"
)

// document downloads one file of a completion certificate. It is never shown in the
// browser, and every download is in the audit log before it begins.
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
	return f.Documents.Attach(request.Context(), ctx.Response(), file, func() error {
		return f.Record(ctx, operator.Entry{
			Action: "document.download", SubjectKind: "application", Subject: uid.String(),
			After: map[string]any{
				"file_uid": file.UID, "name": ui.Visible(file.Name), "sha256": file.SHA256,
			},
		})
	})
}
