package document

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
)

// errHeadTooLong stops the parser on a part whose headers do not end.
var errHeadTooLong = errors.New("part headers too long")

// errBodyEnd is what the parser gets at the end of the body in place of io.EOF.
var errBodyEnd = errors.New("end of body")

// source is the request body below the multipart parser, which alone is too
// trusting. It would take 10 MiB of headers per part. It returns io.EOF at the
// final boundary and also for a body that ends among the headers of a part. And
// it does not tell a body that was sent short from one that broke on the way.
// So source bounds the headers, ends with an error of its own, and keeps the
// error of the connection.
type source struct {
	ctx  context.Context //nolint:containedctx // io.Reader has no argument for it
	body io.Reader
	// head is how many bytes may be read until the next part begins. It counts
	// only while bounded is set.
	head    int64
	bounded bool
	// lineBreak is the one that the body uses, once the first was seen.
	lineBreak string
	last      byte
	// tail is what is left to deliver after the body has ended.
	tail  string
	ended bool
	// err is what ended the body, unless it simply ended.
	err error
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		s.err = err
		return 0, err
	}
	if s.ended {
		if s.tail == "" {
			return 0, errBodyEnd
		}
		n := copy(p, s.tail)
		s.tail = s.tail[n:]
		return n, nil
	}
	if s.bounded {
		if s.head <= 0 {
			s.err = errHeadTooLong
			return 0, s.err
		}
		p = p[:min(int64(len(p)), s.head)]
	}
	n, err := s.body.Read(p)
	s.head -= int64(n)
	s.watch(p[:n])
	if errors.Is(err, io.EOF) {
		// The line break behind the final boundary is optional, but where it is
		// missing the parser wants io.EOF.
		s.ended, s.tail = true, cmp.Or(s.lineBreak, "\r\n")
		return n, nil
	}
	s.err = err
	return n, err
}

// watch learns the line break of the body, which some clients get wrong and the
// parser then follows.
func (s *source) watch(p []byte) {
	if s.lineBreak != "" || len(p) == 0 {
		return
	}
	at := bytes.IndexByte(p, '\n')
	if at > 0 {
		s.last = p[at-1]
	}
	switch {
	case at >= 0 && s.last == '\r':
		s.lineBreak = "\r\n"
	case at >= 0:
		s.lineBreak = "\n"
	default:
		s.last = p[len(p)-1]
	}
}

// bounded passes the first left bytes on to w and swallows the rest.
type bounded struct {
	w    io.Writer
	left int64
	// over says that something was swallowed.
	over bool
	// err is what w failed with, so that it is not taken for a reading error.
	err error
}

// Write implements io.Writer; it falls short only when w does.
func (b *bounded) Write(p []byte) (int, error) {
	kept := p[:min(int64(len(p)), b.left)]
	b.over = b.over || len(kept) < len(p)
	n, err := b.w.Write(kept)
	b.left -= int64(n)
	if err != nil {
		b.err = err
		return n, err
	}
	return len(p), nil
}
