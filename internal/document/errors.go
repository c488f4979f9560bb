package document

import (
	"cmp"
	"fmt"
	"slices"

	"drawbridge/internal/lending"
)

// formErrors collects the errors of a form, in the order of the request.
type formErrors []formError

type formError struct {
	code lending.Code
	lending.FieldError
}

func (f *formErrors) add(code lending.Code, field, format string, args ...any) {
	*f = append(*f, formError{
		code, lending.FieldError{Field: field, Message: fmt.Sprintf(format, args...)},
	})
}

// refusal returns nil when there are no errors. The first error decides the code and the message of
// the response, all are its details: the form and its amounts come first, then the files, then the
// metadata. A form that was too large before any other error reports that first.
func (f formErrors) refusal() *lending.Error {
	if len(f) == 0 {
		return nil
	}
	if f[0].code != lending.CodePayloadTooLarge {
		slices.SortStableFunc(f, func(a, b formError) int { return cmp.Compare(a.rank(), b.rank()) })
	}
	refusal := &lending.Error{Code: f[0].code, Message: f[0].Message}
	for _, one := range f {
		refusal.Details = append(refusal.Details, one.FieldError)
	}
	return refusal
}

func (f formError) rank() int {
	switch f.Field {
	case FieldFiles:
		return 1
	case FieldMetadata:
		return 2
	}
	return 0
}

// byteCount formats a limit for people.
func byteCount(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
