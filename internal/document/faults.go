package document

import (
	"fmt"

	"drawbridge/internal/lending"
)

// faults collects what is wrong with a form, in the order of the request. The
// first decides the code and the message of the answer, all are its details.
type faults struct {
	code lending.Code
	all  lending.Faults
}

func (f *faults) add(code lending.Code, field, format string, args ...any) {
	if len(f.all) == 0 {
		f.code = code
	}
	f.all.Add(field, format, args...)
}

// refusal returns nil when nothing is wrong.
func (f *faults) refusal() *lending.Error {
	if len(f.all) == 0 {
		return nil
	}
	return &lending.Error{Code: f.code, Message: f.all[0].Message, Details: f.all}
}

// byteCount writes a limit the way people say it.
func byteCount(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// storageFault is what the partner learns when the disk is full or the bucket
// does not answer; the cause is for the log.
func storageFault(cause error) error {
	return lending.NewError(lending.CodeInternal, "The files could not be stored just now, "+
		"and nothing of the request took effect; send it again later").WithCause(cause)
}
