package document

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"syscall"

	"drawbridge/internal/lending"
)

const (
	// maxHead bounds the headers of one part, and maxRawHead how much may precede them in the body,
	// which itself bounds the memory used.
	maxHead    = 8 << 10
	maxRawHead = 32 << 10
	// maxBoundary is the limit of RFC 2046; the parser relies on it.
	maxBoundary = 70
	copyBuffer  = 32 << 10
	// sourceBuffer holds any header line that is not too long.
	sourceBuffer = maxHead
	// maxEmptyJSON bounds a JSON body that holds an empty object.
	maxEmptyJSON = 1 << 10
)

// The types of a body that is not empty.
const (
	typeForm   = "multipart/form-data"
	typeJSON   = "application/json"
	saidNoForm = "Content-Type must be multipart/form-data"
)

// CheckType checks before a body is read whether ReadForm would refuse its type. Error:
// UNSUPPORTED_MEDIA_TYPE.
func CheckType(contentType string, limits Limits) error {
	mediaType, _, _ := mime.ParseMediaType(contentType)
	if mediaType == typeForm || mediaType == typeJSON && !limits.DocumentsOnly {
		return nil
	}
	return lending.NewError(lending.CodeUnsupportedMediaType, saidNoForm)
}

// errStop ends the reading of a form that is already refused and whose rest cannot or must not be
// read.
var errStop = errors.New("form refused")

// ReadForm reads the body of a multipart/form-data request and stores its files
// in bucket. An empty body of any content type is an empty form, and so is the JSON
// object {} unless only documents are read.
//
// There are three outcomes. A form and no error: its files are stored and await Keep or Discard. A
// form and a *lending.Error: the request arrived and is refused; nothing is stored, Digests still
// identify it, and Values holds the valid values. No form: nothing is stored and there is nothing
// that an idempotency key could be stored with, because the body did not arrive whole
// (VALIDATION_ERROR, or the error of ctx) or the storage failed.
//
// A refusal lists every error: UNSUPPORTED_MEDIA_TYPE for another content type; PAYLOAD_TOO_LARGE;
// FILE_TYPE_NOT_ALLOWED for a file that is empty, or is not of an accepted type by name and by
// content; VALIDATION_ERROR for a malformed body, a part without a name, a single value given
// twice, too long or not text, and more parts than allowed.
//
// Unknown parts are skipped, and so is a files part with neither name nor content, which is how
// browsers send an empty file input. A single value may be sent as a file; its file name is
// ignored.
func ReadForm(
	ctx context.Context, body io.Reader, contentType string, limits Limits, bucket Bucket,
) (*Form, error) {
	r := &formReader{
		source: &source{ctx: ctx, body: bufio.NewReaderSize(body, sourceBuffer)},
		limits: limits,
		budget: limits.Files + limits.Other,
		form:   &Form{Values: map[string]string{}, bucket: bucket},
		seen:   map[string]bool{},
	}
	defer r.spool.close()
	err := r.readBody(contentType)
	if err != nil && !errors.Is(err, errStop) {
		if lending.ErrorCode(err) == lending.CodeInternal && ctx.Err() == nil {
			// The disk is full, or the bucket does not answer; the cause is for the log.
			code := lending.CodeInternal
			if errors.Is(err, syscall.ENOSPC) {
				code = lending.CodeUnavailable
			}
			err = lending.NewError(code, "The files could not be stored, so the request was not "+
				"carried out and changed nothing; send it again later").WithCause(err)
		}
		return nil, errors.Join(err, r.form.Discard(ctx))
	}
	if refusal := r.errs.refusal(); refusal != nil {
		if err := r.form.Discard(ctx); err != nil {
			refusal = refusal.WithCause(err)
		}
		return r.form, refusal
	}
	return r.form, nil
}

// formReader is the state of one ReadForm.
type formReader struct {
	source *source
	parser *multipart.Reader
	limits Limits
	spool  spool
	buffer []byte

	form    *Form
	seen    map[string]bool // single values, valid or not
	errs    formErrors
	parts   int
	counted int // parts that count towards the limit
	// ignoredHeads is the size of the headers of unknown parts.
	ignoredHeads int64
	budget       int64 // bytes of content that may still be read
	fileBytes    int64
}

// stop records why the rest of the form is not read.
func (r *formReader) stop(code lending.Code, format string, args ...any) error {
	r.errs.add(code, "body", format, args...)
	r.form.digest.note("", fmt.Sprintf(format, args...))
	return errStop
}

func (r *formReader) readBody(contentType string) error {
	switch _, err := r.source.body.Peek(1); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		r.source.err = err
		return r.broken(err)
	}
	mediaType, params, err := mime.ParseMediaType(contentType)
	if mediaType == typeJSON && !r.limits.DocumentsOnly {
		return r.readJSON()
	}
	if mediaType != typeForm {
		return r.stop(lending.CodeUnsupportedMediaType, saidNoForm)
	}
	boundary := params["boundary"]
	if err != nil || boundary == "" || len(boundary) > maxBoundary {
		return r.stop(lending.CodeValidation,
			"Content-Type must have a boundary parameter of 1 to %d characters", maxBoundary)
	}
	r.source.delimiter = []byte("--" + boundary)
	r.parser = multipart.NewReader(r.source, boundary)
	r.buffer = make([]byte, copyBuffer)
	for {
		part, err := r.nextPart()
		if err == nil {
			err = r.readPart(part)
		}
		if err == io.EOF { //nolint:errorlint // a wrapped one is a missing final boundary
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// readJSON accepts an empty object as an empty form, as generic clients send it.
func (r *formReader) readJSON() error {
	text, err := io.ReadAll(io.LimitReader(r.source.body, maxEmptyJSON+1))
	if err != nil {
		r.source.err = err
		return r.broken(err)
	}
	var object map[string]json.RawMessage
	if len(text) > maxEmptyJSON || json.Unmarshal(text, &object) != nil || object == nil ||
		len(object) > 0 {
		return r.stop(lending.CodeUnsupportedMediaType,
			"a JSON body must be {}; send anything else as multipart/form-data")
	}
	return nil
}

// nextPart returns io.EOF after the last part.
func (r *formReader) nextPart() (*multipart.Part, error) {
	r.source.head, r.source.bounded = maxRawHead, true
	part, err := r.parser.NextRawPart()
	r.source.bounded = false // the content of a part is bounded elsewhere
	if err == io.EOF {       // a wrapped one is a missing final boundary
		return nil, io.EOF
	}
	if err != nil {
		return nil, r.broken(err)
	}
	r.parts++
	head := 0
	for name, values := range part.Header {
		head += len(name) + len(strings.Join(values, ""))
	}
	if head > maxHead {
		return nil, r.headTooLong()
	}
	// White space is not kept, but had to be read.
	const share = maxRawHead / maxHead
	return part, r.countPart(part.FormName(), max(int64(head), (maxRawHead-r.source.head)/share))
}

// countPart limits how many parts are accepted, and what is kept of ignored ones.
func (r *formReader) countPart(name string, head int64) error {
	switch {
	case name == "" || name == FieldFiles || r.seen[name]:
		r.counted++
	case !r.knows(name):
		r.ignoredHeads += head
	}
	switch {
	case r.counted > r.limits.Parts:
		return r.stop(lending.CodeValidation, "the body has more than %d files (parts without a "+
			"name and repeated values count as files)", r.limits.Parts)
	case r.ignoredHeads > r.limits.Heads:
		return r.stop(lending.CodePayloadTooLarge,
			"the headers of unknown parts are larger than %s together; leave those parts out",
			byteCount(r.limits.Heads))
	}
	return nil
}

func (r *formReader) headTooLong() error {
	return r.stop(lending.CodeValidation,
		"the headers of a part are longer than %s", byteCount(maxHead))
}

// broken classifies the errors of reading: a body that did not arrive, or one that did and is
// malformed.
func (r *formReader) broken(err error) error {
	switch cause := r.source.err; {
	case r.source.ctx.Err() != nil:
		return fmt.Errorf("reading upload: %w", r.source.ctx.Err())
	case errors.Is(cause, errHeadTooLong):
		return r.headTooLong()
	case cause != nil:
		return lending.Invalid("body", "the request body was cut off before its end; send it again").
			WithCause(err)
	}
	return r.stop(lending.CodeValidation,
		"the multipart body is malformed or ends before its final boundary")
}
