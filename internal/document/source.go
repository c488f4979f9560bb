package document

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
)

// errHeadTooLong stops the parser on a part whose headers are too long.
var errHeadTooLong = errors.New("part headers too long")

// errBodyEnd replaces io.EOF for the parser at the end of the body.
var errBodyEnd = errors.New("end of body")

// source is the request body below the multipart parser, which is too trusting on its own. It would
// accept 10 MiB of headers per part. It returns io.EOF at the final boundary and also for a body
// that ends within the headers of a part. And it does not distinguish a body that was sent
// incomplete from a broken connection. So source bounds the headers, ends with its own error, and
// keeps the error of the connection. In one respect the parser is too strict: a control character
// in a file name is no reason to refuse a form.
type source struct {
	ctx  context.Context //nolint:containedctx // io.Reader has no argument for it
	body *bufio.Reader
	// delimiter is the text between parts, without the line breaks; empty until the body is known to
	// have one.
	delimiter []byte
	// head is how many bytes may be read until the next part begins. It counts
	// only while bounded is set.
	head    int64
	bounded bool
	// pending has been read from the body and is yet to be delivered.
	pending []byte
	// lineBreak is the line break that the body uses, once the first was seen.
	lineBreak string
	last      byte
	// ended reports that the pending bytes are the last ones.
	ended bool
	// err is the error that ended the body, nil for a normal end.
	err error
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		s.err = err
		return 0, err
	}
	if s.bounded {
		if s.head <= 0 {
			s.err = errHeadTooLong
			return 0, s.err
		}
		p = p[:min(int64(len(p)), s.head)]
	}
	if len(s.pending) == 0 {
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.pending)
	s.pending = s.pending[n:]
	s.head -= int64(n)
	return n, nil
}

// fill reads from the body what is delivered next.
func (s *source) fill() (err error) {
	switch {
	case s.err != nil:
		return s.err
	case s.ended:
		return errBodyEnd
	case s.bounded:
		s.pending, err = s.headLine()
	default:
		s.pending, err = s.content()
	}
	s.watch(s.pending)
	switch {
	case errors.Is(err, io.EOF):
		// The line break after the final boundary is optional, but where it is missing the parser
		// requires io.EOF.
		s.ended = true
		s.pending = append(slices.Clone(s.pending), cmp.Or(s.lineBreak, "\r\n")...)
	case err != nil:
		s.err = err
		if len(s.pending) == 0 {
			return err
		}
	}
	return nil
}

// headLine reads one line, so that the parser gets nothing of the content before it asks for it. In
// a line with a file name, control characters become tabs, which the parser accepts and cleanName
// also removes.
func (s *source) headLine() ([]byte, error) {
	line, err := s.body.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		err = nil
	}
	if !mayName.Match(line) {
		return line, err
	}
	text := bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	for i, c := range text {
		if c < ' ' || c == 0x7f {
			text[i] = '\t'
		}
	}
	return line, err
}

// mayName matches the beginning of a line that may hold a file name, or continue one.
var mayName = regexp.MustCompile(`^(?i:[ \t]|content-disposition:)`)

// content returns the buffered content, but nothing after a line that ends the content, since
// headers may begin there.
func (s *source) content() ([]byte, error) {
	for wanted := 1; ; wanted = s.body.Buffered() + 1 {
		_, err := s.body.Peek(wanted)
		there, _ := s.body.Peek(s.body.Buffered()) // cannot fail
		n := s.safe(there)
		if n == 0 && err == nil {
			continue // more input decides whether the content ends here
		}
		if n == 0 {
			n = len(there)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			err = nil // no delimiter is as long
		}
		_, _ = s.body.Discard(n) // nor can this
		return there[:n], err
	}
}

// safe returns how much of the content may be delivered, 0 while that is undecided. Only what the
// parser takes for the end counts: stopping at sequences that a body can hold by the million would
// take seconds.
func (s *source) safe(content []byte) int {
	lineBreak := []byte(s.lineBreak)
	for at := 0; ; at++ {
		next := bytes.Index(content[at:], s.delimiter)
		if next < 0 { // a delimiter may begin at the end of the buffer
			at = max(at, len(content)-len(s.delimiter)+1)
			for !bytes.HasPrefix(s.delimiter, content[at:]) {
				at++
			}
			return at
		}
		at += next
		before := content[:at]
		if !bytes.HasSuffix(before, lineBreak) && !bytes.HasSuffix(lineBreak, before) {
			continue
		}
		after := bytes.TrimLeft(content[at+len(s.delimiter):], " \t")
		if bytes.HasPrefix(after, lineBreak) {
			return len(content) - len(after) + len(lineBreak)
		}
		if bytes.HasPrefix(lineBreak, after) {
			return at
		}
	}
}

// watch detects the line break of the body, which some clients get wrong and the parser then
// follows.
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

// bounded passes the first left bytes on to w and discards the rest.
type bounded struct {
	w    io.Writer
	left int64
	// over reports that something was discarded.
	over bool
	// err is the error of w, so that it is not taken for a reading error.
	err error
}

// Write implements io.Writer; it writes short only when w does.
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
