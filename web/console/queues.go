package console

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/queue"
	"drawbridge/views/operations"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// workedWithin is how recently a process must have worked a queue to count as
// working it: they report every ten minutes.
const workedWithin = 15 * time.Minute

// queueRoutes lists the pages and actions of the job queues.
func (c *Console) queueRoutes() []Route {
	const support, admin = operator.RoleSupport, operator.RoleAdmin
	routes := []Route{
		{http.MethodGet, paths.Queues, "console.queues", support, c.queues},
		{http.MethodPost, paths.QueueAct, "console.queue.act", admin, c.actOnQueue},
		{http.MethodGet, paths.Jobs, "console.jobs", support, c.jobs},
		{http.MethodGet, paths.Job, "console.job", support, c.job},
		{http.MethodPost, paths.JobRetry, "console.job.retry", admin, c.retryJob},
		{http.MethodPost, paths.JobCancel, "console.job.cancel", admin, c.cancelJob},
	}
	if c.JobConsole == nil {
		return routes
	}
	for _, method := range []string{
		http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	} {
		routes = append(routes,
			Route{method, paths.JobConsole, "console.river." + method, admin, c.jobConsole},
			Route{method, paths.JobConsoles, "console.river.in." + method, admin, c.jobConsole})
	}
	return routes
}

// queues shows every queue.
func (c *Console) queues(ctx echo.Context) error {
	found, err := c.Queues.Queues(ctx.Request().Context())
	if err != nil {
		return err
	}
	frame, err := c.frame(ctx, ui.SectionQueues, "Job queues", ui.Crumb{Label: "Job queues"})
	if err != nil {
		return err
	}
	frame.Notice = c.takeNotice(ctx)
	page := operations.Queues{Frame: frame}
	steers := currentUser(ctx).Role.Allows(operator.RoleAdmin)
	if steers && c.JobConsole != nil {
		page.Console = paths.JobConsole + "/"
	}
	for _, each := range found {
		page.Rows = append(page.Rows, c.queueRow(each, steers))
	}
	return render(ctx, http.StatusOK, operations.QueuesPage(page))
}

func (c *Console) queueRow(q queue.Queue, steers bool) operations.QueueRow {
	row := operations.QueueRow{
		Name: q.Name, Paused: value(q.PausedAt), Oldest: value(q.Oldest),
		Worked:  q.SeenAt != nil && c.DB.Now().Sub(*q.SeenAt) < workedWithin,
		Due:     bounded(q.Depth[queue.StateAvailable]),
		Running: bounded(q.Depth[queue.StateRunning]), Retrying: bounded(q.Depth[queue.StateRetryable]),
		Later: bounded(q.Depth[queue.StateScheduled]), GivenUp: bounded(q.Depth[queue.StateDiscarded]),
	}
	switch {
	case !steers || q.SeenAt == nil:
	case q.PausedAt != nil:
		row.Act = actResume
	default:
		row.Act = actPause
	}
	return row
}

// bounded writes a count that stops at its bound.
func bounded(count int) string {
	if count > queue.MaxCount {
		return ui.Number(queue.MaxCount) + "+"
	}
	return ui.Number(count)
}

// What can be done to a queue.
const (
	actPause  = "pause"
	actResume = "resume"
)

// actOnQueue pauses or resumes a queue.
func (c *Console) actOnQueue(ctx echo.Context) error {
	request := ctx.Request().Context()
	name, err := url.PathUnescape(ctx.Param("queue"))
	if err != nil {
		return lending.NewError(lending.CodeNotFound, "no queue is called %q", ctx.Param("queue"))
	}
	called := "The queue “" + operations.QueueWord(name) + "”"
	use, notice := c.Queues.Pause, called+" is paused. Jobs that run go on."
	switch ctx.Param("act") {
	case actPause:
	case actResume:
		use, notice = c.Queues.Resume, called+" goes on."
	default:
		return lending.NewError(lending.CodeNotFound, "a queue can be paused and resumed")
	}
	return c.changeSubject(ctx, subjectChange{
		action: "queue." + ctx.Param("act"), kind: "queue", subject: name,
		use:    func(tx *postgres.Tx) error { return use(request, tx, name) },
		target: paths.Queues, notice: notice,
	})
}

// subjectChange is a use case with its entry of the audit log, and what is said on
// the page that comes next.
type subjectChange struct {
	action, kind, subject string
	use                   func(tx *postgres.Tx) error
	target, notice        string
}

// changeSubject runs a use case and keeps it in the audit log, both or neither.
func (c *Console) changeSubject(ctx echo.Context, change subjectChange) error {
	target, err := c.act(ctx, func(request context.Context, tx *postgres.Tx) (string, error) {
		if err := change.use(tx); err != nil {
			return "", err
		}
		return change.target, c.Operators.Audit(request, tx, operator.Entry{
			Actor: currentUser(ctx).Email, Address: ctx.RealIP(), Action: change.action,
			SubjectKind: change.kind, Subject: change.subject,
		})
	})
	if err != nil {
		return err
	}
	c.leaveNotice(ctx, change.notice)
	return ctx.Redirect(http.StatusSeeOther, target)
}

// jobs lists jobs of a state.
func (c *Console) jobs(ctx echo.Context) error {
	page, filter := readJobFilter(ctx.QueryParams())
	status := http.StatusOK
	if page.Fault != "" {
		status = http.StatusBadRequest
	} else if err := c.fillJobs(ctx, &page, filter); err != nil {
		return err
	}
	var err error
	page.Frame, err = c.frame(ctx, ui.SectionQueues, "Jobs",
		ui.Crumb{Label: "Job queues", Href: paths.Queues}, ui.Crumb{Label: "Jobs"})
	if err != nil {
		return err
	}
	page.Queues = []ui.Option{{Label: "Every queue"}}
	for _, name := range c.Queues.Names {
		page.Queues = append(page.Queues, ui.Option{Value: name, Label: operations.QueueWord(name)})
	}
	return render(ctx, status, operations.JobsPage(page))
}

func readJobFilter(query url.Values) (operations.Jobs, queue.JobFilter) {
	state := query.Get("state")
	if state == "" {
		state = string(queue.StateDiscarded)
	}
	page := operations.Jobs{State: state, Queue: query.Get("queue")}
	filter := queue.JobFilter{State: queue.State(state), Queue: page.Queue, Limit: pageSize}
	if !slices.Contains(queue.States(), filter.State) {
		page.Fault = "There is no such state; choose one above."
	}
	if text := query.Get("cursor"); text != "" {
		var err error
		if filter.Before, err = strconv.ParseInt(text, 10, 64); err != nil || filter.Before < 1 {
			page.Fault = "The page's place in the list cannot be read; start from the newest."
		}
	}
	for _, each := range queue.States() {
		page.Tabs = append(page.Tabs, ui.Tab{
			Label: operations.JobChip(string(each)).Word, Href: paths.JobsOf(string(each), page.Queue),
			Current: each == filter.State,
		})
	}
	if page.Queue != "" {
		page.Active = []ui.ActiveFilter{{
			Label: "Queue " + operations.QueueWord(page.Queue), Href: paths.JobsOf(state, ""),
		}}
	}
	return page, filter
}

func (c *Console) fillJobs(ctx echo.Context, page *operations.Jobs, filter queue.JobFilter) error {
	found, more, err := c.Queues.List(ctx.Request().Context(), filter)
	if err != nil {
		return err
	}
	for _, each := range found {
		page.Rows = append(page.Rows, jobRow(each))
	}
	query := url.Values{"state": {page.State}}
	if page.Queue != "" {
		query.Set("queue", page.Queue)
	}
	if filter.Before > 0 {
		page.Newest = paths.With(paths.Jobs, query)
	}
	if more {
		last := strconv.FormatInt(found[len(found)-1].ID, 10)
		page.Older = paths.With(paths.Jobs, with(query, "cursor", last))
	}
	return nil
}

func jobRow(job queue.Job) operations.JobRow {
	return operations.JobRow{
		ID: job.ID, Kind: job.Kind, Queue: job.Queue, State: string(job.State),
		Attempts: ui.Number(job.Attempt) + " of " + ui.Number(job.MaxAttempts),
		Error:    job.Failures.Last(), Due: job.ScheduledAt,
	}
}

// jobParam reads the id of a job from the address.
func jobParam(ctx echo.Context) (int64, error) {
	id, err := strconv.ParseInt(ctx.Param("job"), 10, 64)
	if err != nil {
		return 0, lending.NewError(lending.CodeNotFound, "%q is no id of a job", ctx.Param("job"))
	}
	return id, nil
}

// job shows one job and what its attempts ended in.
func (c *Console) job(ctx echo.Context) error {
	id, err := jobParam(ctx)
	if err != nil {
		return err
	}
	found, err := c.Queues.Job(ctx.Request().Context(), id)
	if err != nil {
		return err
	}
	title := "Job " + strconv.FormatInt(id, 10) + ": " + operations.JobWord(found.Kind)
	frame, err := c.frame(ctx, ui.SectionQueues, title,
		ui.Crumb{Label: "Job queues", Href: paths.Queues},
		ui.Crumb{Label: "Jobs", Href: paths.JobsOf(string(found.State), "")},
		ui.Crumb{Label: title})
	if err != nil {
		return err
	}
	frame.Notice = c.takeNotice(ctx)
	steers := currentUser(ctx).Role.Allows(operator.RoleAdmin)
	page := operations.Job{
		Frame: frame, JobRow: jobRow(found), Created: found.CreatedAt,
		Attempted: value(found.AttemptedAt), Finalized: value(found.FinalizedAt),
		Args:     string(found.Args),
		CanRetry: steers && found.CanRetry(), CanCancel: steers && found.CanCancel(),
	}
	page.About, page.AboutName = aboutJob(found.Args)
	for _, failure := range slices.Backward(found.Failures) {
		page.Failures = append(page.Failures, operations.JobFailure{
			At: failure.At, Attempt: failure.Attempt, Error: failure.Error,
		})
	}
	return render(ctx, http.StatusOK, operations.JobPage(page))
}

// aboutJob is the page of the delivery or the e-mail that a job's arguments name,
// and what to call it.
func aboutJob(args []byte) (path, name string) {
	var names struct {
		Delivery string `json:"delivery_uid"`
		Email    string `json:"email_uid"`
	}
	if err := json.Unmarshal(args, &names); err != nil {
		return "", "" // the arguments of another queue may have any form
	}
	switch {
	case names.Delivery != "":
		return paths.To(paths.Delivery, names.Delivery), "The delivery"
	case names.Email != "":
		return paths.To(paths.Email, names.Email), "The e-mail"
	}
	return "", ""
}

// retryJob lets a job run at once.
func (c *Console) retryJob(ctx echo.Context) error {
	return c.moveJob(ctx, "job.retry", c.Queues.Retry, "The job runs as soon as a worker is free.")
}

// cancelJob ends a job that is not done.
func (c *Console) cancelJob(ctx echo.Context) error {
	return c.moveJob(ctx, "job.cancel", c.Queues.Cancel, "The job is cancelled.")
}

func (c *Console) moveJob(
	ctx echo.Context, action string, use queue.Change, notice string,
) error {
	id, err := jobParam(ctx)
	if err != nil {
		return err
	}
	return c.changeSubject(ctx, subjectChange{
		action: action, kind: "job", subject: ctx.Param("job"),
		use:    func(tx *postgres.Tx) error { return use(ctx.Request().Context(), tx, id) },
		target: paths.ToID(paths.Job, id), notice: notice,
	})
}
