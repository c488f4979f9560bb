package jobs

import (
	"context"
	"log/slog"
	"time"
)

// resumeEvery is how often e-mails that wait are looked after.
const resumeEvery = 5 * time.Second

// ResumeMailArgs asks for the e-mails that need not wait any more.
type ResumeMailArgs struct{}

// Kind names the job in the queue.
func (ResumeMailArgs) Kind() string { return "resume_mail" }

// resumeMail queues e-mails that waited, and lets one try a server that refuses us.
func (d *Deps) resumeMail(ctx context.Context) error {
	count, err := d.MailSender.Resume(ctx)
	if count > 0 {
		slog.InfoContext(ctx, "resumed mail", "count", count)
	}
	return err
}
