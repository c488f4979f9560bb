package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/application"
	"drawbridge/internal/document"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/operator"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
)

// LenderPath precedes the paths of the lender's own systems (decisions section 10).
const LenderPath = "/lender/v1"

// fileField names the uid of a file's path.
const fileField = "file_uid"

// maxBatch bounds the body of a batch, in bytes.
const maxBatch = 4 << 20

// lender serves the lender's own systems.
type lender struct {
	*edge

	applications *application.Service
	loans        *loan.Service
	documents    *document.Store
	operators    *operator.Service
}

// routes are the operations of the lender's own systems.
func (l *lender) routes() []Route {
	get := func(path, name string, handler echo.HandlerFunc, scopes ...partner.Scope) Route {
		return Route{
			Method: http.MethodGet, Path: LenderPath + path, Name: name, Handler: handler,
			Scopes: scopes,
		}
	}
	post := func(path, name string, handler echo.HandlerFunc, scope partner.Scope) Route {
		return Route{
			Method: http.MethodPost, Path: LenderPath + path, Name: name, Handler: handler,
			Scopes: []partner.Scope{scope},
		}
	}
	settle := post("/disbursements/status", "lenderFundingBatch", l.lenderBatch,
		partner.ScopeFunding)
	settle.MaxBody = maxBatch
	return []Route{
		get("/applications", "lenderApplications", l.lenderApplications, partner.ScopeRead),
		get("/applications/:uid", "lenderApplication", l.lenderApplication, partner.ScopeRead),
		post("/applications/:uid/status", "lenderStatus", l.lenderStatus,
			partner.ScopeApplications),
		post("/applications/:uid/amount", "lenderAmount", l.lenderAmount,
			partner.ScopeApplications),
		post("/applications/:uid/terms", "lenderTerms", l.lenderTerms, partner.ScopeApplications),
		post("/applications/:uid/document", "lenderDocument", l.lenderDocument,
			partner.ScopeDocuments),
		post("/applications/:uid/tasks", "lenderTask", l.lenderTask, partner.ScopeTasks),
		post("/tasks/:uid/status", "lenderTaskStatus", l.lenderTaskStatus, partner.ScopeTasks),
		get("/disbursements", "lenderDisbursements", l.lenderDisbursements, partner.ScopeRead,
			partner.ScopeFunding),
		get("/disbursements/:id", "lenderDisbursement", l.lenderDisbursement, partner.ScopeRead,
			partner.ScopeFunding),
		get("/files/:uid", "lenderFile", l.lenderFile, partner.ScopeDocuments),
		post("/disbursements/:id/status", "lenderFunding", l.lenderFunding, partner.ScopeFunding),
		settle,
	}
}

// systemName is what records call one of the lender's systems.
func systemName(caller partner.Caller) string {
	return caller.Name + " (" + caller.ClientID + ")"
}

// audit tells the audit log what one of the lender's systems did, in the transaction of it.
func audit(c echo.Context, tx *postgres.Tx, entries ...operator.Entry) error {
	for i := range entries {
		entries[i].Actor, entries[i].Address = systemName(callerOf(c)), c.RealIP()
	}
	return operator.Audit(c.Request().Context(), tx, entries...)
}

// lenderApplicationBody is the lender's application object: the partner's, with all that
// hangs on it.
type lenderApplicationBody struct {
	applicationBody
	Loan           *loanBody               `json:"loan"`
	Tasks          []taskBody              `json:"tasks"`
	DocumentStatus *string                 `json:"document_status"`
	Certificates   []lenderCertificateBody `json:"certificates"`
}

type lenderCertificateBody struct {
	UID       uuid.UUID       `json:"certificate_uid"`
	Draw      *int64          `json:"merchantDisbursementId"`
	Files     []fileBody      `json:"files"`
	Metadata  json.RawMessage `json:"metadata"`
	CreatedAt string          `json:"created_at"`
}

func newLenderApplicationBody(whole application.Whole) lenderApplicationBody {
	body := lenderApplicationBody{
		applicationBody: newApplicationBody(whole.Application),
		Tasks:           make([]taskBody, 0, len(whole.Tasks)),
		Certificates:    make([]lenderCertificateBody, 0, len(whole.Certificates)),
	}
	if whole.Loan != nil {
		shown := newLoanBody(*whole.Loan)
		body.Loan = &shown
	}
	if whole.Document != "" {
		status := string(whole.Document)
		body.DocumentStatus = &status
	}
	for _, task := range whole.Tasks {
		body.Tasks = append(body.Tasks, newTaskBody(task.Task))
	}
	for _, stored := range whole.Certificates {
		certificate := lenderCertificateBody{
			UID: stored.UID, Metadata: stored.Metadata, CreatedAt: formatTime(stored.CreatedAt),
			Files: newFileBodies(stored.Files),
		}
		if stored.DisbursementID != 0 {
			certificate.Draw = &stored.DisbursementID
		}
		body.Certificates = append(body.Certificates, certificate)
	}
	return body
}

// The lists' names in their cursors.
const (
	lenderApplicationList = "lender-applications"
	disbursementList      = "disbursements"
)

type lenderApplicationsBody struct {
	Applications []lenderApplicationBody `json:"applications"`
	NextCursor   *string                 `json:"next_cursor"`
}

func (l *lender) lenderApplications(c echo.Context) error {
	query, err := readQuery(c)
	if err != nil {
		return err
	}
	filter := application.UpdatedFilter{
		MerchantUID: query.uid("merchant_uid"), Since: query.moment("updated_since"),
	}
	page := query.page(lenderApplicationList)
	if status, given := query.one("status"); given {
		filter.Status, err = lending.ParseApplicationStatus(status)
		query.errs.Merge(err)
	}
	if err := query.errs.Err(); err != nil {
		return err
	}
	found, next, err := l.applications.Updated(c.Request().Context(), filter, page)
	if err != nil {
		return err
	}
	body := lenderApplicationsBody{
		Applications: make([]lenderApplicationBody, 0, len(found)),
		NextCursor:   cursorOf(lenderApplicationList, next),
	}
	for _, whole := range found {
		body.Applications = append(body.Applications, newLenderApplicationBody(whole))
	}
	return l.answer(c, body)
}

func (l *lender) lenderApplication(c echo.Context) error {
	uid, err := pathUID(c, applicationField)
	if err != nil {
		return err
	}
	found, err := l.applications.Whole(c.Request().Context(), uid)
	if err != nil {
		return err
	}
	return l.answer(c, newLenderApplicationBody(found))
}

// lenderChange is a change of an application by one of the lender's systems.
type lenderChange[T any] struct {
	// action names it in the audit log, which keeps what shown says before and after, and the
	// reason if one may be given.
	action   string
	reasoned bool
	shown    func(application.Application) any
	read     func(body *object) T
	change   func(
		ctx context.Context, tx *postgres.Tx, by loan.Caller, uid uuid.UUID, to T,
	) (application.Application, error)
}

// handle changes the application of the path, and answers with the whole of it. What changed
// nothing is not in the audit log.
func (k lenderChange[T]) handle(l *lender, c echo.Context) error {
	uid, pathErr := pathUID(c, applicationField)
	return l.jsonEffect(c, pathErr, func(body *object) operation {
		to := k.read(body)
		var reason *string
		if k.reasoned {
			reason = body.optionalText("reason", lending.MaxReason)
		}
		return func(tx *postgres.Tx) (int, any, error) {
			ctx := c.Request().Context()
			before, err := l.applications.ReadLocked(ctx, tx, uid, uuid.Nil)
			if err != nil {
				return 0, nil, err
			}
			after, err := k.change(ctx, tx, actor(c), uid, to)
			if err != nil {
				return 0, nil, err
			}
			entry := operator.Entry{
				Action: k.action, SubjectKind: "application", Subject: uid.String(),
				Before: k.shown(before.Application), After: k.shown(after),
			}
			if reason != nil {
				entry.Reason = *reason
			}
			was, wasErr := json.Marshal(entry.Before)
			is, isErr := json.Marshal(entry.After)
			if wasErr != nil || isErr != nil || !bytes.Equal(was, is) {
				if err := audit(c, tx, entry); err != nil {
					return 0, nil, err
				}
			}
			whole, err := l.applications.WholeIn(ctx, tx, uid)
			return http.StatusOK, newLenderApplicationBody(whole), err
		}
	})
}

func (l *lender) lenderStatus(c echo.Context) error {
	return lenderChange[lending.ApplicationStatus]{
		action: "application.status", reasoned: true,
		shown: func(app application.Application) any { return map[string]any{"status": app.Status} },
		read: func(body *object) lending.ApplicationStatus {
			return parsed(body, "status", lending.ParseApplicationStatus)
		},
		change: l.applications.Move,
	}.handle(l, c)
}

func shownOffers(app application.Application) any {
	return map[string]any{"offers": newApplicationBody(app).Offers}
}

func (l *lender) lenderAmount(c echo.Context) error {
	return lenderChange[lending.Money]{
		action: "application.amount", shown: shownOffers,
		read:   func(body *object) lending.Money { return body.money("approved_amount") },
		change: l.applications.ChangeAmount,
	}.handle(l, c)
}

func (l *lender) lenderTerms(c echo.Context) error {
	return lenderChange[lending.Terms]{
		action: "application.terms", shown: shownOffers, read: readTerms,
		change: l.applications.ChangeTerms,
	}.handle(l, c)
}

func (l *lender) lenderDocument(c echo.Context) error {
	return lenderChange[lending.DocumentStatus]{
		action: "application.document",
		shown: func(app application.Application) any {
			return map[string]any{"document": app.Document}
		},
		read: func(body *object) lending.DocumentStatus {
			return parsed(body, "status", lending.ParseDocumentStatus)
		},
		change: l.applications.RecordDocument,
	}.handle(l, c)
}

func (l *lender) lenderTask(c echo.Context) error {
	uid, pathErr := pathUID(c, applicationField)
	return l.jsonEffect(c, pathErr, func(body *object) operation {
		title := body.linkless("title", maxLine)
		return func(tx *postgres.Tx) (int, any, error) {
			task, err := l.applications.AddTask(c.Request().Context(), tx, actor(c), uid, title)
			if err != nil {
				return 0, nil, err
			}
			return http.StatusCreated, newTaskBody(task), audit(c, tx, operator.Entry{
				Action: "task.create", SubjectKind: "application", Subject: uid.String(),
				After: map[string]any{"task_uid": task.UID, "name": task.Title},
			})
		}
	})
}

func (l *lender) lenderTaskStatus(c echo.Context) error {
	uid, pathErr := pathUID(c, taskField)
	return l.jsonEffect(c, pathErr, func(body *object) operation {
		to := parsed(body, "status", lending.ParseTaskStatus)
		return func(tx *postgres.Tx) (int, any, error) {
			task, changed, err := l.applications.MoveTask(c.Request().Context(), tx, actor(c), uid, to)
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
			return http.StatusOK, newTaskBody(task), err
		}
	})
}

type disbursementsBody struct {
	Disbursements []historyBody `json:"disbursements"`
	NextCursor    *string       `json:"next_cursor"`
}

func (l *lender) lenderDisbursements(c echo.Context) error {
	query, err := readQuery(c)
	if err != nil {
		return err
	}
	filter := loan.DrawFilter{
		MerchantUID: query.uid("merchant_uid"), RequestedBefore: query.moment("requested_before"),
	}
	page := query.page(disbursementList)
	if status, given := query.one("status"); given {
		filter.Status, err = lending.ParseFundingStatus(status)
		query.errs.Merge(err)
	}
	if err := query.errs.Err(); err != nil {
		return err
	}
	found, next, err := l.loans.Draws(c.Request().Context(), filter, page)
	if err != nil {
		return err
	}
	body := disbursementsBody{
		Disbursements: make([]historyBody, 0, len(found)),
		NextCursor:    cursorOf(disbursementList, next),
	}
	for _, disbursement := range found {
		body.Disbursements = append(body.Disbursements, newHistoryBody(disbursement))
	}
	return l.answer(c, body)
}

func (l *lender) lenderDisbursement(c echo.Context) error {
	id, err := pathNumber(c)
	if err != nil {
		return err
	}
	found, err := l.loans.Draw(c.Request().Context(), id)
	if err != nil {
		return err
	}
	traceOf(c).ApplicationUID = found.ApplicationUID
	return l.answer(c, newHistoryBody(found))
}

// lenderFile sends a certificate's file; every download is in the audit log before it begins.
func (l *lender) lenderFile(c echo.Context) error {
	uid, err := pathUID(c, fileField)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	file, owner, err := l.loans.AnyFile(ctx, uid)
	if err != nil {
		return err
	}
	traceOf(c).ApplicationUID = owner
	return l.documents.Attach(ctx, c.Response(), file, func() error {
		_, err := l.operators.Act(ctx, operator.Change{
			Actor: systemName(callerOf(c)), Address: c.RealIP(),
			Do: func(context.Context, *postgres.Tx) (operator.Outcome, error) {
				return operator.Did("", operator.Entry{
					Action: "document.download", SubjectKind: "application", Subject: owner.String(),
					After: map[string]any{
						"file_uid": file.UID, "name": file.Name, "sha256": file.SHA256,
					},
				}), nil
			},
		})
		return err
	})
}

// movedBody is a disbursement, and whether this call changed it.
type movedBody struct {
	historyBody
	Changed bool `json:"changed"`
}

func (l *lender) lenderFunding(c echo.Context) error {
	id, pathErr := pathNumber(c)
	return l.jsonEffect(c, pathErr, func(body *object) operation {
		change := l.fundingChange(body)
		return func(tx *postgres.Tx) (int, any, error) {
			all, err := l.moveFundings(c, tx, []loan.Move{{ID: id, FundingChange: change}})
			if err != nil {
				return 0, nil, err
			}
			moved := all[0]
			if moved.Refusal != nil {
				return 0, nil, moved.Refusal
			}
			traceOf(c).ApplicationUID = moved.ApplicationUID
			return http.StatusOK, movedBody{newHistoryBody(moved.Disbursement), moved.Changed}, nil
		}
	})
}

// moveFundings moves the money of disbursements on as the console's form does, and tells the
// audit log.
func (l *lender) moveFundings(
	c echo.Context, tx *postgres.Tx, moves []loan.Move,
) ([]loan.Moved, error) {
	for i := range moves {
		moves[i].NeedsReason = true
	}
	all, err := l.loans.MoveFundings(c.Request().Context(), tx, actor(c), moves)
	if err != nil {
		return nil, err
	}
	var entries []operator.Entry
	for _, moved := range all {
		if !moved.Changed {
			continue
		}
		change := moved.Changes[len(moved.Changes)-1].FundingChange
		entry := operator.Entry{
			Action: "draw.status", SubjectKind: "application", Subject: moved.ApplicationUID.String(),
			Before: map[string]any{"status": moved.Former()},
			After: struct {
				ID     int64                 `json:"merchant_disbursement_id"`
				Status lending.FundingStatus `json:"status"`
				evidenceBody
			}{moved.ID, change.Status, newEvidenceBody(change)},
		}
		if change.Reason != nil {
			entry.Reason = *change.Reason
		}
		entries = append(entries, entry)
	}
	return all, audit(c, tx, entries...)
}
