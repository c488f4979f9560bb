package document

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// The parts that ReadForm accepts (specification section 2.2). FieldFiles may be repeated, each of
// the others may appear once.
const (
	FieldFiles                     = "files"
	FieldMetadata                  = "metadata"
	FieldProjectCompletedEarly     = "projectCompletedEarly"
	FieldUpdatedDisbursementAmount = "updatedDisbursementAmount"
	FieldUpdatedLoanAmount         = "updatedLoanAmount"
)

// Limits bounds a form. All sizes are bytes of content, and a value of exactly
// the limit is still accepted.
type Limits struct {
	// File is the size of one file.
	File int64
	// Files is the size of all files together.
	Files int64
	// Metadata is the size of the metadata.
	Metadata int64
	// Value is the size of any other single value.
	Value int64
	// Other is how many bytes values and unknown parts may add to Files.
	Other int64
	// Heads is the size of the headers of all unknown parts together.
	Heads int64
	// Parts is the number of files, of parts without a name and of repeated values.
	Parts int
	// DocumentsOnly makes every part except files and metadata unknown.
	DocumentsOnly bool
}

// DefaultLimits are those of specification section 8, and our own where it sets none.
func DefaultLimits() Limits {
	return Limits{
		File:     10 << 20,
		Files:    50 << 20,
		Metadata: 64 << 10,
		Value:    1 << 10,
		Other:    1 << 20,
		Heads:    1 << 20,
		Parts:    100,
	}
}

// File is one stored file of a form.
type File struct {
	UID uuid.UUID `db:"file_uid" json:"file_uid"`
	// Name is for display only. It is valid UTF-8 of at most 255 bytes with an
	// accepted extension, and has no path, control or direction characters.
	Name string `json:"name"`
	// Size is in bytes.
	Size int64 `json:"size"`
	// ContentType is derived from the checked content, not from the request.
	ContentType string `db:"content_type" json:"content_type"`
	// SHA256 is the hash of the content in lower-case hex.
	SHA256 string `json:"sha256"`
	// Key is the key of the content in the bucket; see Store.Open.
	Key string `db:"object_key" json:"-"`
}

// Form is the content of a multipart request. Its files are stored already, but nothing refers to
// them yet: call Keep once the transaction that does has committed, and Discard in every other
// case. Deferring Discard is right, as it does nothing after Keep. A form is not safe for
// concurrent use.
type Form struct {
	// Values holds the single-value parts that were present, by field name. All are valid UTF-8
	// without NUL; they may be empty.
	Values map[string]string
	// Files are in the order of the request.
	Files []File
	// Ignored is the name of the first unknown part that holds a file, empty for none.
	Ignored string

	digest formDigest
	bucket Bucket
	open   []uuid.UUID // files whose markers are in the bucket
	late   uuid.UUID   // one of open, whose content may still appear: left to the sweep
}

// Digests identify the content of the request: its parts by name, file name and content, but
// neither the boundary nor any other part header. There is one for each encoding that a release has
// used, the oldest first; two requests are the same if they share one. The newest ignores the order
// of parts with different names.
func (f *Form) Digests() [][sha256.Size]byte { return f.digest.values() }

// settleTimeout bounds the clean-up after a request, whose own context may have
// ended already.
const settleTimeout = 30 * time.Second

// Keep makes the files permanent. An error leaves them in place too: their markers wait for the
// next sweep, so log it instead of failing the request.
func (f *Form) Keep(ctx context.Context) error { return f.settle(ctx, true) }

// Discard removes the files, even when ctx is cancelled. After an error the
// next sweep removes what is left.
func (f *Form) Discard(ctx context.Context) error { return f.settle(ctx, false) }

func (f *Form) settle(ctx context.Context, keep bool) error {
	if len(f.open) == 0 {
		return nil
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer stop()
	var errs []error
	for _, uid := range f.open {
		if uid == f.late {
			errs = append(errs, f.bucket.Delete(ctx, documentKey(uid)))
		} else {
			errs = append(errs, settle(ctx, f.bucket, uid, keep))
		}
	}
	f.open = nil
	if !keep {
		f.Files = nil
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("settling uploaded files: %w", err)
	}
	return nil
}
