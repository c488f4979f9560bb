package document

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
)

func (r *formReader) readPart(part *multipart.Part) error {
	name := part.FormName()
	switch encoding := strings.ToLower(part.Header.Get("Content-Transfer-Encoding")); encoding {
	case "", "7bit", "8bit", "binary":
	default:
		r.form.digest.note(name, encoding)
		if r.knows(name) {
			r.errs.add(lending.CodeValidation, name,
				"part %d is encoded (Content-Transfer-Encoding); send its bytes unencoded", r.parts)
		}
	}
	var err error
	switch {
	case name == FieldFiles:
		err = r.readFile(part)
	case r.knows(name):
		err = r.readValue(part, name)
	default:
		if part.FileName() != "" {
			r.form.Ignored = cmp.Or(r.form.Ignored, name)
		}
		_, err = r.copyPart(part, io.Discard)
	}
	if err != nil {
		return err
	}
	if name == "" {
		r.errs.add(lending.CodeValidation, "body",
			`part %d has no name; give it a Content-Disposition: form-data; name="..."`, r.parts)
	}
	return nil
}

// knows reports whether the form has a part of this name.
func (r *formReader) knows(name string) bool {
	switch name {
	case FieldFiles, FieldMetadata:
		return true
	case FieldProjectCompletedEarly, FieldUpdatedDisbursementAmount, FieldUpdatedLoanAmount:
		return !r.limits.DocumentsOnly
	}
	return false
}

// contentSum is the size and hash of a part that was read.
type contentSum struct {
	size int64
	hash [sha256.Size]byte
}

// copyPart copies the content of a part to sink and enters it in the digest. It stops exactly where
// the budget ends, so that the digest of an endless body does not depend on the sizes of network
// packets.
func (r *formReader) copyPart(part *multipart.Part, sink io.Writer) (contentSum, error) {
	hash := sha256.New()
	target := &bounded{w: sink, left: r.budget}
	// One byte more than the budget, to tell a full form from one that continues.
	content := io.LimitReader(part, r.budget+1)
	size, err := io.CopyBuffer(io.MultiWriter(&bounded{w: hash, left: r.budget}, target),
		content, r.buffer)
	sum := contentSum{size: min(size, r.budget)}
	hash.Sum(sum.hash[:0])
	r.form.digest.part(part.FormName(), part.FileName(), sum)
	switch {
	case target.err != nil:
		return sum, fmt.Errorf("spooling upload: %w", target.err)
	case err != nil:
		return sum, r.broken(err)
	case size > r.budget:
		return sum, r.stop(lending.CodePayloadTooLarge, "the request body is larger than %s",
			byteCount(r.limits.Files+r.limits.Other))
	}
	r.budget -= size
	return sum, nil
}

// readValue keeps a single value unless it is invalid.
func (r *formReader) readValue(part *multipart.Part, name string) error {
	limit, tooLong := r.limits.Value, lending.CodeValidation
	if name == FieldMetadata {
		limit, tooLong = r.limits.Metadata, lending.CodePayloadTooLarge
	}
	var text bytes.Buffer
	sink := &bounded{w: &text, left: limit}
	if _, err := r.copyPart(part, sink); err != nil {
		return err
	}
	twice := r.seen[name]
	r.seen[name] = true
	switch value := text.String(); {
	case twice:
		r.errs.add(lending.CodeValidation, name, "%q is given more than once", name)
	case sink.over:
		r.errs.add(tooLong, name, "%q is longer than %s", name, byteCount(limit))
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		r.errs.add(lending.CodeValidation, name, "%q must be UTF-8 text without NUL", name)
	default:
		r.form.Values[name] = value
	}
	return nil
}

// readFile checks one file and stores it if the form has no errors so far.
func (r *formReader) readFile(part *multipart.Part) error {
	name := cleanName(part.FileName())
	if err := r.spool.reset(); err != nil {
		return err
	}
	sink := &bounded{w: &r.spool, left: r.limits.File}
	sum, err := r.copyPart(part, sink)
	if err != nil {
		return err
	}
	if name == "" && sum.size == 0 {
		return nil
	}
	contentType := r.checkFile(name, sum.size, sink.over)
	if r.spool.err != nil {
		return fmt.Errorf("reading upload spool: %w", r.spool.err)
	}
	if len(r.errs) > 0 {
		return nil
	}
	return r.store(File{
		UID:         uuid.New(),
		Name:        name,
		Size:        sum.size,
		ContentType: contentType,
		SHA256:      fmt.Sprintf("%x", sum.hash),
	})
}

// checkFile records the errors of the file in the spool and returns its content type.
func (r *formReader) checkFile(name string, size int64, over bool) (contentType string) {
	before := r.fileBytes
	r.fileBytes += size
	if name == "" {
		r.errs.add(lending.CodeValidation, FieldFiles,
			`part %d, a file, has no file name; add filename="..." to its Content-Disposition`, r.parts)
		return ""
	}
	if over {
		r.errs.add(lending.CodePayloadTooLarge, FieldFiles,
			"the file %q is larger than %s", name, byteCount(r.limits.File))
	}
	if before <= r.limits.Files && r.fileBytes > r.limits.Files {
		r.errs.add(lending.CodePayloadTooLarge, FieldFiles,
			"the files together are larger than %s; the limit is exceeded at %q",
			byteCount(r.limits.Files), name)
	}
	contentType, problem := identify(name, r.spool.content(), over)
	if problem != "" {
		r.errs.add(lending.CodeFileTypeNotAllowed, FieldFiles, "the file %q %s", name, problem)
	}
	return contentType
}

// store puts the spooled file into the bucket, its marker first.
func (r *formReader) store(file File) error {
	file.Key = documentKey(file.UID)
	// From here on Discard has something to remove, whatever the result of Put.
	r.form.open = append(r.form.open, file.UID)
	bucket := r.form.bucket
	if err := bucket.Put(r.source.ctx, markerKey(file.UID), sectionOf(nil)); err != nil {
		return fmt.Errorf("marking upload: %w", err)
	}
	if err := bucket.Put(r.source.ctx, file.Key, r.spool.content()); err != nil {
		if errors.Is(err, errMayCome) {
			r.form.late = file.UID
		}
		return fmt.Errorf("storing upload: %w", err)
	}
	r.form.Files = append(r.form.Files, file)
	return nil
}
