package api

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/document"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
)

// loans serves loans and their draws.
type loans struct {
	*edge

	service   *loan.Service
	documents *document.Store
}

// routes returns the operations on loans.
func (l *loans) routes() []Route {
	return []Route{
		get("/v2/loan/:uid", "getLoan", l.getLoan),
		get("/v2/loan/:uid/draw-preview", "previewDraw", l.previewDraw),
		{
			Method: http.MethodPost, Path: "/v2/loan/:uid/request-draw",
			Name: "requestDraw", Handler: l.requestDraw, Upload: true,
		},
		{
			Method: http.MethodPost, Path: "/v2/loan/:uid/completion-cert-upload",
			Alias: "/loan/:uid/completion-cert-upload",
			Name:  "uploadCertificate", Handler: l.uploadCertificate, Upload: true,
		},
	}
}

// loanField names the uid of the path.
const loanField = "loanApplicationUid"

// disbursementBody is a draw as it was granted (specification section 2.4).
type disbursementBody struct {
	ID             int64         `json:"merchantDisbursementId"`
	MerchantUID    uuid.UUID     `json:"merchantUid"`
	ApplicationUID uuid.UUID     `json:"loanApplicationUid"`
	Gross          lending.Money `json:"grossDisbursedAmount"`
	Net            lending.Money `json:"netDisbursedAmount"`
	Number         int           `json:"disbursementNumber"`
	AmountFunded   lending.Money `json:"amountFunded"`
}

// historyBody is a disbursement in the history of its loan.
type historyBody struct {
	disbursementBody
	Kind        string  `json:"kind"`
	Status      string  `json:"status"`
	RequestedAt string  `json:"requestedAt"`
	SettledAt   *string `json:"settledAt"`
	CancelledAt *string `json:"cancelledAt"`
	ReturnedAt  *string `json:"returnedAt"`
	lending.Evidence
	Changes []changeBody `json:"changes"`
}

// changeBody is one step in the funding of a disbursement.
type changeBody struct {
	Status string `json:"status"`
	lending.Evidence
	At string  `json:"at"`
	By *string `json:"by"`
}

type loanBody struct {
	ApplicationUID uuid.UUID       `json:"loan_application_uid"`
	MerchantUID    uuid.UUID       `json:"merchant_uid"`
	Status         string          `json:"application_status"`
	ProductUID     uuid.UUID       `json:"product_uid"`
	ProductCode    string          `json:"product_code"`
	OriginalAmount lending.Money   `json:"original_amount"`
	LoanAmount     lending.Money   `json:"loan_amount"`
	DrawnAmount    lending.Money   `json:"drawn_amount"`
	Balance        lending.Money   `json:"balance"`
	Schedule       []lending.Stage `json:"schedule"`
	Disbursements  []historyBody   `json:"disbursements"`
}

type previewBody struct {
	Kind              *string        `json:"kind"`
	Stage             *int           `json:"stage"`
	Gross             *lending.Money `json:"gross_amount"`
	Fee               *lending.Money `json:"fee_amount"`
	Net               *lending.Money `json:"net_amount"`
	DocumentsRequired bool           `json:"documents_required"`
	Refusal           *refusalBody   `json:"refusal"`
}

type refusalBody struct {
	Code    lending.Code `json:"code"`
	Message string       `json:"message"`
}

func newDisbursementBody(d loan.Disbursement) disbursementBody {
	return disbursementBody{
		ID:             d.ID,
		MerchantUID:    d.MerchantUID,
		ApplicationUID: d.ApplicationUID,
		Gross:          d.Gross,
		Net:            d.Net,
		Number:         d.Number,
		AmountFunded:   d.Net,
	}
}

func newHistoryBody(d loan.Disbursement) historyBody {
	return historyBody{
		disbursementBody: newDisbursementBody(d),
		Kind:             string(d.Kind),
		Status:           string(d.Status),
		RequestedAt:      formatTime(d.RequestedAt),
		SettledAt:        formatOptional(d.SettledAt),
		CancelledAt:      formatOptional(d.CancelledAt),
		ReturnedAt:       formatOptional(d.ReturnedAt),
		Evidence:         d.Evidence(),
		Changes: each(d.Changes, func(change loan.Change) changeBody {
			return changeBody{
				Status: string(change.Status), Evidence: change.Evidence,
				At: formatTime(change.At), By: postgres.OrNull(change.By),
			}
		}),
	}
}

func newLoanBody(l loan.Loan) loanBody {
	return loanBody{
		ApplicationUID: l.ApplicationUID,
		MerchantUID:    l.MerchantUID,
		Status:         string(l.Status),
		ProductUID:     l.ProductUID,
		ProductCode:    l.ProductCode,
		OriginalAmount: l.OriginalAmount,
		LoanAmount:     l.Amount(),
		DrawnAmount:    l.Drawn(),
		Balance:        l.Balance(),
		Schedule:       append([]lending.Stage{}, l.Stages...),
		Disbursements:  each(l.History, newHistoryBody),
	}
}

func (l *loans) getLoan(c echo.Context) error {
	uid, err := pathUID(c, loanField)
	if err != nil {
		return err
	}
	found, err := l.service.Get(c.Request().Context(), actor(c), uid)
	return l.answer(c, newLoanBody(found), err)
}

func (l *loans) previewDraw(c echo.Context) error {
	uid, err := pathUID(c, loanField)
	if err != nil {
		return err
	}
	values, err := previewValues(c.Request().URL.RawQuery)
	if err != nil {
		return err
	}
	request, err := lending.ParseDrawRequest(values, lending.DocumentsAssumed)
	if err != nil {
		return err
	}
	preview, err := l.service.PreviewDraw(c.Request().Context(), actor(c), uid, request)
	if err != nil {
		return err
	}
	body := previewBody{DocumentsRequired: preview.DocumentsRequired}
	if preview.Kind != "" {
		body.Kind, body.Stage = new(string(preview.Kind)), &preview.Stage
	}
	if preview.Refusal != nil {
		body.Refusal = &refusalBody{Code: preview.Refusal.Code, Message: preview.Refusal.Message}
	} else {
		body.Gross, body.Fee, body.Net = &preview.Gross, &preview.Fee, &preview.Net
	}
	return l.answer(c, body, nil)
}

// previewValues reads the query of a preview. Each known parameter may be given once.
func previewValues(rawQuery string) (map[string]string, error) {
	query, err := parseQuery(rawQuery)
	if err != nil {
		return nil, err
	}
	values := make(map[string]string)
	var errs lending.FieldErrors
	for _, name := range []string{
		lending.PartDisbursementAmount, lending.PartLoanAmount, lending.PartCompletedEarly,
	} {
		given := query[name]
		if len(given) > 1 {
			errs.Add(name, "%q must be given once", name)
		}
		if len(given) > 0 {
			values[name] = given[0]
		}
	}
	return values, errs.Err()
}

func (l *loans) requestDraw(c echo.Context) error {
	return l.upload(c, document.DefaultLimits(), func(
		tx *postgres.Tx, uid uuid.UUID, input loan.DrawInput,
	) (int, any, error) {
		disbursement, err := l.service.RequestDraw(c.Request().Context(), tx, actor(c), uid, input)
		return http.StatusOK, newDisbursementBody(disbursement), err
	})
}

type certificateBody struct {
	UID      uuid.UUID        `json:"certificate_uid"`
	Files    []document.File  `json:"files"`
	Metadata lending.Metadata `json:"metadata"`
}

func (l *loans) uploadCertificate(c echo.Context) error {
	limits := document.DefaultLimits()
	limits.DocumentsOnly = true
	return l.upload(c, limits, func(
		tx *postgres.Tx, uid uuid.UUID, input loan.DrawInput,
	) (int, any, error) {
		certificate, err := l.service.StoreCertificate(c.Request().Context(), tx, actor(c), uid, input)
		return http.StatusCreated, certificateBody{
			UID: certificate.UID, Metadata: certificate.Metadata,
			Files: append([]document.File{}, certificate.Files...),
		}, err
	})
}

// upload streams a multipart body to the bucket and runs the operation on its content. The
// stored files are kept only if the operation succeeded. If it did and the answer still
// failed, the commit may or may not have happened: then the files stay until the sweep
// checks the database.
func (l *loans) upload(
	c echo.Context, limits document.Limits,
	do func(tx *postgres.Tx, uid uuid.UUID, input loan.DrawInput) (int, any, error),
) error {
	ctx := c.Request().Context()
	contentType := c.Request().Header.Get(echo.HeaderContentType)
	uid, pathErr := pathUID(c, loanField)
	if pathErr == nil && c.Request().ContentLength > limits.Files+limits.Other {
		// Answer before anything is read, so that the client sees the answer.
		return lending.NewError(lending.CodePayloadTooLarge,
			"the request body is larger than %d MiB", (limits.Files+limits.Other)>>20)
	}
	early := cmp.Or(pathErr, checkUpload(c, limits))
	if err := l.refuseAtOnce(c, early); err != nil {
		return err
	}
	body, err := l.uploads.begin(callerOf(c).ClientID, c.Request())
	if err != nil {
		return err
	}
	defer body.end()
	form, formErr := document.ReadForm(ctx, body, contentType, limits, l.documents.Bucket())
	if form == nil {
		return cmp.Or(body.refusal, early, formErr)
	}
	succeeded := false
	err = l.effect(c, form.Digests(), func(tx *postgres.Tx) (int, any, error) {
		if early != nil {
			return 0, nil, early
		}
		input, err := drawInput(form, formErr)
		if err != nil {
			return 0, nil, err
		}
		status, data, err := do(tx, uid, input)
		succeeded = err == nil
		return status, data, nameIgnoredPart(err, form.Ignored)
	})
	_, refused := errors.AsType[*lending.Error](err) // before the commit
	// If a retry was answered by replay, the files of the rolled-back attempt are not needed.
	replayed := c.Response().Header().Get(replayedHeader) != ""
	switch {
	case !succeeded || refused || replayed:
		return errors.Join(err, form.Discard(ctx))
	case err != nil:
		return err
	}
	return form.Keep(ctx)
}

// checkUpload checks the type and the coding of an upload, before its parts are read.
func checkUpload(c echo.Context, limits document.Limits) error {
	length := c.Request().ContentLength
	if expectsContinue(c) || length > 0 { // an empty body may be of any type
		err := document.CheckType(c.Request().Header.Get(echo.HeaderContentType), limits)
		if err != nil {
			return err
		}
	}
	if length == 0 {
		return nil
	}
	return checkCoding(c)
}

// nameIgnoredPart adds to a refusal for missing documents which part held a file that was
// ignored: frameworks name such parts "file" or "files[]".
func nameIgnoredPart(err error, part string) error {
	refusal, ok := errors.AsType[*lending.Error](err)
	if !ok || refusal.Code != lending.CodeDocumentsRequired || part == "" {
		return err
	}
	told := *refusal
	told.Details = lending.Invalid(document.FieldFiles,
		"%q is missing; the file in the unknown part %q was ignored: rename that part to %q",
		document.FieldFiles, lending.MemberPath("", part), document.FieldFiles).Details
	return &told
}

// drawInput checks the values of a form and names everything that is wrong with it. formErr
// is the error of reading the form.
func drawInput(form *document.Form, formErr error) (loan.DrawInput, error) {
	input := loan.DrawInput{Files: form.Files}
	var metadataErr, amountsErr error
	if raw, given := form.Values[document.FieldMetadata]; given {
		input.Metadata, metadataErr = lending.ParseMetadata([]byte(raw))
	}
	// Whether documents are required is decided by the loan service.
	input.Request, amountsErr = lending.ParseDrawRequest(form.Values, lending.DocumentsAbsent)
	// Report everything that is wrong in one refusal, in the order of the checks; the first error
	// determines the code. An error that is not about content, such as a size, is answered alone.
	var errs lending.FieldErrors
	var code lending.Code
	for _, err := range []error{amountsErr, formErr, metadataErr} {
		if err == nil {
			continue
		}
		own := lending.ErrorCode(err)
		if own != lending.CodeValidation && own != lending.CodeFileTypeNotAllowed {
			return input, err
		}
		code = cmp.Or(code, own)
		errs.Merge(err)
	}
	if len(errs) == 0 {
		return input, nil
	}
	return input, &lending.Error{Code: code, Message: errs[0].Message, Details: errs}
}
