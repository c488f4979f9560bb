package api

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/idempotency"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
)

// maxJSON bounds a JSON body.
const maxJSON = 1 << 20

// replayedHeader marks an answer as the stored answer of an earlier request.
const replayedHeader = "Idempotency-Replayed"

// edge is shared by the handlers of all resources: it runs their changes and writes their answers.
type edge struct {
	idempotency *idempotency.Store
	partners    *partner.Service
	uploads     *uploads
	now         func() time.Time
}

// operation does the work of a request in the transaction. It returns the status and data
// of the answer.
type operation func(tx *postgres.Tx) (status int, data any, err error)

// effect runs an operation that changes something, at most once per Idempotency-Key, and
// writes the answer. digests identify the request's content, the oldest encoding first.
func (e *edge) effect(c echo.Context, digests [][sha256.Size]byte, do operation) error {
	request, err := idempotencyRequest(c)
	if err != nil {
		return err
	}
	// The credentials were checked before the body arrived, which may have taken minutes.
	if _, err := e.recheck(c, nil); err != nil {
		return err
	}
	request.Fingerprint = idempotency.NewFingerprint(c.Request().Method,
		routeOf(c).Path+"?uid="+c.Param("uid")+"&id="+c.Param("id")+c.Param("date"), digests...)
	use := func(tx *postgres.Tx) (idempotency.Reply, error) {
		status, data, err := do(tx)
		if err != nil {
			return idempotency.Reply{}, err
		}
		// The operation may have waited for a lock, so check the credentials again. A revocation
		// that this check misses returns only after the commit, unless the commit takes longer
		// than the period for which a process trusts what it has read of a client.
		if _, err := e.recheck(c, tx); err != nil {
			return idempotency.Reply{}, err
		}
		return idempotency.Reply{Status: status, Body: renderData(e.now(), status, data)}, nil
	}
	reply, err := e.idempotency.Run(c.Request().Context(), request, use)
	if err != nil {
		return err
	}
	traceReply(c, reply.Body)
	if reply.Replayed {
		c.Response().Header().Set(replayedHeader, "true")
	}
	return c.Blob(reply.Status, echo.MIMEApplicationJSON, reply.Body)
}

// idempotencyRequest returns a request's sender and key. Error: VALIDATION_ERROR for a bad key.
func idempotencyRequest(c echo.Context) (idempotency.Request, error) {
	caller := callerOf(c)
	key, err := idempotency.ParseKey(c.Request().Header.Values(idempotency.Header))
	return idempotency.Request{
		ClientID: caller.ClientID, MerchantUID: caller.MerchantUID, Key: key,
	}, err
}

// refuseAtOnce returns refusal, or the error of a malformed key, before the body is read.
// It returns nil if there is nothing to refuse or if the Idempotency-Key was used: which
// answer the key then gets depends on the content.
func (e *edge) refuseAtOnce(c echo.Context, refusal error) error {
	request, err := idempotencyRequest(c)
	if err != nil || refusal == nil {
		return err
	}
	used, err := e.idempotency.IsUsed(c.Request().Context(), request)
	if err != nil || used {
		return err
	}
	return refusal
}

// pathEffect runs an operation that the path specifies completely. Errors in the path are
// answered as by jsonEffect.
func (e *edge) pathEffect(c echo.Context, pathErr error, do operation) error {
	digests, err := e.unusedContent(c, pathErr)
	if err != nil {
		return err
	}
	return e.effect(c, digests, func(tx *postgres.Tx) (int, any, error) {
		if pathErr != nil {
			return 0, nil, pathErr
		}
		return do(tx)
	})
}

// unusedContent digests a body that the operation ignores, because a key belongs to one
// content all the same. Without a key the body is not read.
func (e *edge) unusedContent(c echo.Context, pathErr error) ([][sha256.Size]byte, error) {
	request, err := idempotencyRequest(c)
	if err != nil || request.Key == "" {
		return nil, cmp.Or(err, pathErr)
	}
	early := cmp.Or(pathErr, checkSize(c, c.Request().ContentLength))
	if err := e.refuseAtOnce(c, early); err != nil {
		return nil, err
	}
	raw, err := e.readBody(c)
	if err == nil {
		err = checkSize(c, int64(len(raw)))
	}
	// Some clients always send an empty object, which earlier releases treated as no content.
	if emptyObject.Match(raw) {
		raw = nil
	}
	return [][sha256.Size]byte{sha256.Sum256(raw)}, err
}

var emptyObject = regexp.MustCompile(`^\s*(\{\s*\})?\s*$`)

// answer writes a successful answer to a read, or returns err.
func (e *edge) answer(c echo.Context, data any, err error) error {
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, renderData(e.now(), http.StatusOK, data))
}

// jsonEffect reads a JSON object from the body and runs the operation that decode makes of
// it. Errors in the path (pathErr) or in the body are answered after the Idempotency-Key
// was looked up: a key that was used for another request is refused for that first.
func (e *edge) jsonEffect(
	c echo.Context, pathErr error, decode func(body *object) operation,
) error {
	early := cmp.Or(pathErr, checkJSON(c, c.Request().ContentLength))
	if err := e.refuseAtOnce(c, early); err != nil {
		return err
	}
	raw, err := e.readBody(c)
	if err != nil {
		return err
	}
	traceNamed(c, raw)
	digests := [][sha256.Size]byte{sha256.Sum256(raw)}
	return e.effect(c, digests, func(tx *postgres.Tx) (int, any, error) {
		if pathErr != nil {
			return 0, nil, pathErr
		}
		if err := checkJSON(c, int64(len(raw))); err != nil {
			return 0, nil, err
		}
		body, err := parseObject(raw)
		if err != nil {
			return 0, nil, err
		}
		do := decode(body)
		if err := body.err(); err != nil {
			return 0, nil, err
		}
		return do(tx)
	})
}

// readBody reads a body. If the body is too large, it returns one byte more than the limit.
func (e *edge) readBody(c echo.Context) ([]byte, error) {
	body, err := e.uploads.begin(callerOf(c).ClientID, c.Request())
	if err != nil {
		return nil, err
	}
	defer body.end()
	raw, err := io.ReadAll(io.LimitReader(body, maxBody(c)+1))
	if err != nil && body.refusal == nil {
		return nil, lending.NewError(lending.CodeValidation,
			"the request body was cut off before its end; send it again").WithCause(err)
	}
	return raw, body.refusal
}

// expectsContinue reports whether the client waits for "100 Continue" before it sends the body,
// and sends none if it is refused. The first read of the body would send "100 Continue".
func expectsContinue(c echo.Context) bool {
	return strings.EqualFold(c.Request().Header.Get("Expect"), "100-continue")
}

// checkJSON checks the type and the size of a body before it is parsed.
func checkJSON(c echo.Context, size int64) error {
	media, _, err := mime.ParseMediaType(c.Request().Header.Get(echo.HeaderContentType))
	if err != nil || media != echo.MIMEApplicationJSON {
		return lending.NewError(lending.CodeUnsupportedMediaType,
			"Content-Type must be application/json")
	}
	return cmp.Or(checkCoding(c), checkSize(c, size))
}

// checkCoding refuses a compressed body. Error: UNSUPPORTED_MEDIA_TYPE.
func checkCoding(c echo.Context) error {
	coding := strings.Join(c.Request().Header.Values(echo.HeaderContentEncoding), ", ")
	if slices.ContainsFunc(strings.Split(coding, ","), compresses) {
		return lending.NewError(lending.CodeUnsupportedMediaType,
			"Content-Encoding %s is not supported; send the body unencoded", coding)
	}
	return nil
}

// compresses reports whether a content coding is a compression. Some clients put a charset
// there, which is ignored.
func compresses(coding string) bool {
	switch strings.ToLower(strings.TrimSpace(coding)) {
	case "gzip", "x-gzip", "deflate", "compress", "br", "zstd":
		return true
	}
	return false
}

// checkSize checks the size of a body in bytes.
func checkSize(c echo.Context, size int64) error {
	if limit := maxBody(c); size > limit {
		return lending.NewError(lending.CodePayloadTooLarge,
			"the body must be at most %d bytes", limit)
	}
	return nil
}

func maxBody(c echo.Context) int64 { return cmp.Or(routeOf(c).MaxBody, maxJSON) }

// pathUID reads the uid of the path. Error: VALIDATION_ERROR naming it.
func pathUID(c echo.Context, field string) (uuid.UUID, error) {
	text := c.Param("uid")
	uid, err := uuid.Parse(text)
	if err != nil || len(text) != uidLength {
		return uuid.Nil, lending.Invalid(field,
			"%q must be a UUID such as 0199e6a2-7c4e-7d6b-9a54-3f0c8c1f2b7d", field)
	}
	switch field {
	case taskField, deliveryField, recoveryField, fileField, faultField:
	default:
		traceOf(c).ApplicationUID = uid
	}
	return uid, nil
}

// callerKey is where the middleware leaves the authenticated caller.
const callerKey = "api.caller"

func callerOf(c echo.Context) partner.Caller {
	caller, ok := c.Get(callerKey).(partner.Caller)
	if !ok {
		// A route without the credentials middleware is a bug of ours; it must not serve anybody.
		panic(fmt.Sprintf("route %s has no caller", c.Path()))
	}
	return caller
}

// merchantsOf returns the merchants whose data the caller may see.
func merchantsOf(c echo.Context) []uuid.UUID { return callerOf(c).MerchantUIDs }

// actor returns the caller in the form that the services take: a system of the lender,
// which may reach everything, or a client that acts for one merchant.
func actor(c echo.Context) loan.Caller {
	caller := callerOf(c)
	if routeOf(c).IsLender() {
		return loan.Caller{Name: systemName(caller)}
	}
	if caller.MerchantUID == uuid.Nil {
		// The services would take such a caller for an operator, who may see everything.
		panic(fmt.Sprintf("route %s has no merchant", c.Path()))
	}
	return loan.Caller{MerchantUID: caller.MerchantUID, Name: caller.ClientID}
}

// routeKey is where the middleware stores the route. Its Path is the documented one, even
// if the alias was requested.
const routeKey = "api.route"

func routeOf(c echo.Context) Route {
	route, _ := c.Get(routeKey).(Route)
	return route
}
