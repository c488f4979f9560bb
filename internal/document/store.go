package document

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"
)

// The two folders of a bucket; see the package comment.
const (
	documents = "documents/"
	pending   = "pending/"
)

// documentKey is where the content of a file lies.
func documentKey(uid uuid.UUID) string { return documents + uid.String() }

// markerKey is what stands in the bucket while the fate of a file is open.
func markerKey(uid uuid.UUID) string { return pending + uid.String() }

// Store is the collection of stored documents.
type Store struct {
	bucket Bucket
}

// NewStore returns a store over bucket.
func NewStore(bucket Bucket) *Store { return &Store{bucket: bucket} }

// Bucket is where ReadForm puts the files.
func (s *Store) Bucket() Bucket { return s.bucket }

// Open returns the content of the document that File.Key named; the caller
// closes it. The error of an absent one wraps fs.ErrNotExist.
func (s *Store) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	// Anything else would have come from a mistake, and might name a marker.
	uid, err := uuid.Parse(strings.TrimPrefix(key, documents))
	if err != nil || key != documentKey(uid) {
		return nil, fmt.Errorf("opening document: %q is not the key of a document", key)
	}
	return s.bucket.Get(ctx, key)
}

// Swept counts what a sweep did.
type Swept struct {
	// Kept is the number of markers removed beside documents that a row names.
	Kept int
	// Removed is the number of documents removed because no row names them.
	Removed int
}

// Sweep settles the files whose marker is older than before: those that
// isReferenced finds in the database stay and lose their marker, the others are
// removed. before must lie further back than any request can last; a day is
// plenty. isReferenced gets a File.Key and must ask the primary database. Where
// it fails nothing is touched, and the rest is swept all the same.
func (s *Store) Sweep(
	ctx context.Context, before time.Time,
	isReferenced func(ctx context.Context, key string) (bool, error),
) (Swept, error) {
	var swept Swept
	var errs []error
	for object, err := range s.bucket.List(ctx, pending) {
		if err != nil {
			return swept, errors.Join(append(errs, fmt.Errorf("sweeping documents: %w", err))...)
		}
		uid, err := uuid.Parse(strings.TrimPrefix(object.Key, pending))
		if err != nil || !object.ModTime.Before(before) {
			continue // not one of our markers, or a request may still be at it
		}
		referenced, err := isReferenced(ctx, documentKey(uid))
		if err == nil {
			err = settle(ctx, s.bucket, uid, referenced)
		}
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("sweeping document %s: %w", uid, err))
		case referenced:
			swept.Kept++
		default:
			swept.Removed++
		}
	}
	return swept, errors.Join(errs...)
}

// settle ends the open state of a file. The marker goes last: whatever is left
// undone stays marked for the next sweep.
func settle(ctx context.Context, bucket Bucket, uid uuid.UUID, keep bool) error {
	if !keep {
		if err := bucket.Delete(ctx, documentKey(uid)); err != nil {
			return err
		}
	}
	return bucket.Delete(ctx, markerKey(uid))
}
