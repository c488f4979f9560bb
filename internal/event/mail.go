package event

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// Welcome schedules the welcome mail of an application. However often it is
// called, a borrower is welcomed once.
func (r *Recorder) Welcome(ctx context.Context, tx *postgres.Tx, applicationUID uuid.UUID) error {
	var app application
	err := tx.GetContext(ctx, &app, `
		SELECT merchant_uid, partner_uid, borrower_first_name, borrower_last_name, borrower_email,
		       project_name, communications
		  FROM applications
		 WHERE application_uid = $1`, applicationUID)
	if err != nil {
		return fmt.Errorf("loading the borrower of application %s: %w", applicationUID, err)
	}
	// The welcome mail is what ends the pause, so the pause does not hold it back.
	app.Communications = lending.CommunicationsEnabled
	return r.schedule(ctx, tx, applicationUID, app, email.KindWelcome, nil)
}

// mailFor schedules the mail that goes with an event: stipulations when the
// application waits for the borrower, and each new task (specification
// section 3.2).
func (r *Recorder) mailFor(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, app application, event lending.Event,
) error {
	switch event.Kind {
	case lending.EventStatusUpdated:
		switch lending.ApplicationStatus(event.Status) {
		case lending.StatusHardPullAuthorization, lending.StatusPendClearance:
			return r.schedule(ctx, tx, uid, app, email.KindStipulation,
				map[string]string{"status": event.Status})
		}
	case lending.EventTaskCreated:
		return r.schedule(ctx, tx, uid, app, email.KindTask,
			map[string]string{"task_title": *event.TaskTitle})
	}
	return nil
}

func (r *Recorder) schedule(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, app application,
	kind email.Kind, params map[string]string,
) error {
	if params == nil {
		params = make(map[string]string)
	}
	params["first_name"] = app.FirstName
	params["project_name"] = app.ProjectName
	return r.Emails.Schedule(ctx, tx, email.Message{
		Kind:           kind,
		ApplicationUID: uid,
		ToName:         app.FirstName + " " + app.LastName,
		ToAddress:      app.Email,
		Paused:         app.Communications == lending.CommunicationsPaused,
		Params:         params,
	})
}
