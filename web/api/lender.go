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

// routes returns the operations of the lender's own systems.
func (l *lender) routes() []Route {
	settle := post("/disbursements/status", "lenderFundingBatch", l.lenderBatch)
	settle.MaxBody = maxBatch
	tasks := tasks{l.edge, l.applications}
	return []Route{
		get("/applications", "lenderApplications", l.lenderApplications).ofLender(partner.ScopeRead),
		get("/applications/:uid", "lenderApplication", l.lenderApplication).ofLender(partner.ScopeRead),
		post("/applications/:uid/status", "lenderStatus", lenderChange[lending.ApplicationStatus]{
			lender: l, action: "application.status", reasoned: true, shown: shownStatus,
			read: status(lending.ParseApplicationStatus), change: l.applications.Move,
		}.handle).ofLender(partner.ScopeApplications),
		post("/applications/:uid/amount", "lenderAmount", lenderChange[lending.Money]{
			lender: l, action: "application.amount", shown: shownOffers,
			read: readAmount, change: l.applications.ChangeAmount,
		}.handle).ofLender(partner.ScopeApplications),
		post("/applications/:uid/terms", "lenderTerms", lenderChange[lending.Terms]{
			lender: l, action: "application.terms", shown: shownOffers,
			read: readTerms, change: l.applications.ChangeTerms,
		}.handle).ofLender(partner.ScopeApplications),
		post("/applications/:uid/document", "lenderDocument", lenderChange[lending.DocumentStatus]{
			lender: l, action: "application.document", shown: shownDocument,
			read: status(lending.ParseDocumentStatus), change: l.applications.RecordDocument,
		}.handle).ofLender(partner.ScopeDocuments),
		post("/applications/:uid/tasks", "lenderTask", tasks.add).ofLender(partner.ScopeTasks),
		post("/tasks/:uid/status", "lenderTaskStatus", tasks.move).ofLender(partner.ScopeTasks),
		get("/disbursements", "lenderDisbursements", l.lenderDisbursements).
			ofLender(partner.ScopeRead, partner.ScopeFunding),
		get("/disbursements/:id", "lenderDisbursement", l.lenderDisbursement).
			ofLender(partner.ScopeRead, partner.ScopeFunding),
		get("/files/:uid", "lenderFile", l.lenderFile).ofLender(partner.ScopeDocuments),
		post("/disbursements/:id/status", "lenderFunding", l.lenderFunding).
			ofLender(partner.ScopeFunding),
		settle.ofLender(partner.ScopeFunding),
	}
}

// ofLender makes the route an operation of the lender's systems that have any of the scopes.
func (r Route) ofLender(scopes ...partner.Scope) Route {
	r.Path, r.Scopes = LenderPath+r.Path, scopes
	return r
}

// systemName is the name of a lender's system in records.
func systemName(caller partner.Caller) string { return caller.Name + " (" + caller.ClientID + ")" }

// audit writes what one of the lender's systems did to the audit log, in the same
// transaction. What a partner does in a sandbox is not written.
func audit(c echo.Context, tx *postgres.Tx, entries ...operator.Entry) error {
	if !routeOf(c).IsLender() {
		return nil
	}
	for i := range entries {
		entries[i].Actor, entries[i].Address = systemName(callerOf(c)), c.RealIP()
	}
	return operator.Audit(c.Request().Context(), tx, entries...)
}

// lenderApplicationBody is the lender's application object: the partner's, with everything
// that belongs to the application.
type lenderApplicationBody struct {
	applicationBody
	Loan           *loanBody               `json:"loan"`
	Tasks          []application.Task      `json:"tasks"`
	DocumentStatus *string                 `json:"document_status"`
	Certificates   []lenderCertificateBody `json:"certificates"`
}

type lenderCertificateBody struct {
	UID       uuid.UUID       `json:"certificate_uid"`
	Draw      *int64          `json:"merchantDisbursementId"`
	Files     []document.File `json:"files"`
	Metadata  json.RawMessage `json:"metadata"`
	CreatedAt string          `json:"created_at"`
}

func newLenderApplicationBody(whole application.Whole) lenderApplicationBody {
	body := lenderApplicationBody{
		applicationBody: newApplicationBody(whole.Application),
		Tasks: each(whole.Tasks, func(task application.TaskEntry) application.Task {
			return task.Task
		}),
		DocumentStatus: postgres.OrNull(string(whole.Document)),
		Certificates: each(whole.Certificates,
			func(stored loan.StoredCertificate) lenderCertificateBody {
				return lenderCertificateBody{
					UID: stored.UID, Draw: postgres.OrNull(stored.DisbursementID),
					Files:    append([]document.File{}, stored.Files...),
					Metadata: stored.Metadata, CreatedAt: formatTime(stored.CreatedAt),
				}
			}),
	}
	if whole.Loan != nil {
		body.Loan = new(newLoanBody(*whole.Loan))
	}
	return body
}

// The names of the lists in their cursors.
const (
	lenderApplicationList = "lender-applications"
	disbursementList      = "disbursements"
)

func (l *lender) lenderApplications(c echo.Context) error {
	query := readQuery(c)
	filter := application.UpdatedFilter{
		MerchantUID: query.uid("merchant_uid"), Since: query.moment("updated_since"),
	}
	page := query.page(lenderApplicationList)
	filter.Status = given(query, "status", lending.ParseApplicationStatus)
	if err := query.errs.Err(); err != nil {
		return err
	}
	found, next, err := l.applications.Updated(c.Request().Context(), filter, page)
	return l.answer(c, map[string]any{
		"applications": each(found, newLenderApplicationBody),
		"next_cursor":  cursorOf(lenderApplicationList, next),
	}, err)
}

func (l *lender) lenderApplication(c echo.Context) error {
	uid, err := pathUID(c, applicationField)
	if err != nil {
		return err
	}
	found, err := l.applications.Whole(c.Request().Context(), uid)
	return l.answer(c, newLenderApplicationBody(found), err)
}

// lenderChange is a change of an application by one of the lender's systems.
type lenderChange[T any] struct {
	*lender

	// action is the change's name in the audit log. The log keeps what shown returns before
	// and after, and the reason if reasoned.
	action   string
	reasoned bool
	shown    func(application.Application) any
	read     func(body *object) T
	change   changeOf[T]
}

// handle changes the application of the path, and answers with the whole application. A
// request that changed nothing is not in the audit log.
func (k lenderChange[T]) handle(c echo.Context) error {
	uid, pathErr := pathUID(c, applicationField)
	return k.jsonEffect(c, pathErr, func(body *object) operation {
		to := k.read(body)
		var reason *string
		if k.reasoned {
			reason = body.optionalText("reason", lending.MaxReason)
		}
		return func(tx *postgres.Tx) (int, any, error) {
			ctx := c.Request().Context()
			before, err := k.applications.ReadLocked(ctx, tx, uid, uuid.Nil)
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
				Reason: postgres.OrZero(reason),
			}
			was, wasErr := json.Marshal(entry.Before)
			is, isErr := json.Marshal(entry.After)
			if wasErr != nil || isErr != nil || !bytes.Equal(was, is) {
				if err := audit(c, tx, entry); err != nil {
					return 0, nil, err
				}
			}
			whole, err := k.applications.WholeIn(ctx, tx, uid)
			return http.StatusOK, newLenderApplicationBody(whole), err
		}
	})
}

func shownStatus(app application.Application) any { return map[string]any{"status": app.Status} }

func shownOffers(app application.Application) any {
	return map[string]any{"offers": newApplicationBody(app).Offers}
}

func shownDocument(app application.Application) any {
	return map[string]any{"document": app.Document}
}

func (l *lender) lenderDisbursements(c echo.Context) error {
	query := readQuery(c)
	filter := loan.DrawFilter{
		MerchantUID: query.uid("merchant_uid"), RequestedBefore: query.moment("requested_before"),
	}
	page := query.page(disbursementList)
	filter.Status = given(query, "status", lending.ParseFundingStatus)
	if err := query.errs.Err(); err != nil {
		return err
	}
	found, next, err := l.loans.Draws(c.Request().Context(), filter, page)
	return l.answer(c, map[string]any{
		"disbursements": each(found, newHistoryBody), "next_cursor": cursorOf(disbursementList, next),
	}, err)
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
	return l.answer(c, newHistoryBody(found), nil)
}

// lenderFile sends a certificate's file. Every download is in the audit log before it begins.
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

// movedBody is a disbursement, and whether this request changed it.
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

// moveFundings moves disbursements on as the console's form does, and writes the audit log.
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
		entries = append(entries, operator.Entry{
			Action: "draw.status", SubjectKind: "application", Subject: moved.ApplicationUID.String(),
			Before: map[string]any{"status": moved.Former()},
			After: struct {
				ID     int64                 `json:"merchant_disbursement_id"`
				Status lending.FundingStatus `json:"status"`
				lending.Evidence
			}{moved.ID, change.Status, change.Evidence},
			Reason: postgres.OrZero(change.Reason),
		})
	}
	return all, audit(c, tx, entries...)
}
