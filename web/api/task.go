package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
)

// taskField names the uid of a task's path.
const taskField = "task_uid"

// tasks serves the tasks of applications, for the lender and for sandboxes that play its part.
type tasks struct {
	*edge

	service *application.Service
}

// add adds a task to the application of the path.
func (t tasks) add(c echo.Context) error {
	uid, pathErr := pathUID(c, applicationField)
	return t.jsonEffect(c, pathErr, func(body *object) operation {
		title := body.linkless("title", maxLine)
		return func(tx *postgres.Tx) (int, any, error) {
			task, err := t.service.AddTask(c.Request().Context(), tx, actor(c), uid, title)
			if err != nil {
				return 0, nil, err
			}
			return http.StatusCreated, task, audit(c, tx, operator.Entry{
				Action: "task.create", SubjectKind: "application", Subject: uid.String(),
				After: map[string]any{"task_uid": task.UID, "name": task.Title},
			})
		}
	})
}

// move completes or cancels the task of the path.
func (t tasks) move(c echo.Context) error {
	uid, pathErr := pathUID(c, taskField)
	return t.jsonEffect(c, pathErr, func(body *object) operation {
		to := parsed(body, "status", lending.ParseTaskStatus)
		return func(tx *postgres.Tx) (int, any, error) {
			task, changed, err := t.service.MoveTask(c.Request().Context(), tx, actor(c), uid, to)
			if err != nil {
				return 0, nil, err
			}
			traceOf(c).ApplicationUID = task.ApplicationUID
			if changed {
				err = audit(c, tx, operator.Entry{
					Action: "task.status", SubjectKind: "application",
					Subject: task.ApplicationUID.String(),
					Before:  map[string]any{"task_uid": task.UID, "status": task.Former},
					After: map[string]any{
						"task_uid": task.UID, "status": to, "name": task.Title,
					},
				})
			}
			return http.StatusOK, task, err
		}
	})
}
