package sender

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// The bounds of an answer.
const (
	// maxHead bounds status line and headers on the wire, informational
	// answers included.
	maxHead = 64 << 10
	// maxWire bounds what is read of a body on the wire: a compressed one may be endless and
	// still decompress to nothing.
	maxWire = 1 << 20
	// maxBody is how much of a body is kept, decompressed.
	maxBody = 16 << 10
	// maxLogHeaders and maxLogHeaderBytes bound the headers that are kept.
	maxLogHeaders     = 100
	maxLogHeaderBytes = 16 << 10
)

var errTooMuch = errors.New("more was sent than is read")

// gzipReaders are pooled because each takes 40 KiB.
var gzipReaders sync.Pool

// readBody reads as much of the body as is kept, and masks the secrets in it. Anything that
// goes wrong with a body becomes a note: the status came before it and holds. It returns
// whether nothing did, so that reading on to the end of the body makes the connection reusable.
func (a *Attempt) readBody(
	ctx context.Context, resp *http.Response, secrets secretTexts,
) (intact bool) {
	decoded, note, done := decode(resp, secrets)
	defer done()
	// Read somewhat more than is kept, so that a secret across the boundary is masked too.
	read, err := io.ReadAll(io.LimitReader(decoded, maxBody+maxEcho))
	kept := read
	if len(secrets.known) > 0 {
		whole := err == nil && len(read) < maxBody+maxEcho
		kept = []byte(secrets.mask(string(read), !whole))
	}
	a.ResponseBody, a.Truncated = kept[:min(len(kept), maxBody)], len(read) > maxBody
	switch {
	case a.Truncated:
		note = join(note, fmt.Sprintf("the body is longer than the %d KiB that are kept", maxBody>>10))
	case err != nil:
		how := "broke off"
		var corrupt flate.CorruptInputError
		switch f := interrupted(ctx, err, ""); {
		case f != nil && f.class == ClassTimeout:
			how = "was still coming when the time ran out"
		case f != nil:
			how = "was still coming when the sender stopped"
		case errors.Is(err, errTooMuch):
			how = fmt.Sprintf("went on for more than %d KiB", maxWire>>10)
		case errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader),
			errors.As(err, &corrupt):
			how = "could not be decompressed"
		}
		note = join(note, fmt.Sprintf("the body %s; %d bytes of it were read", how, len(read)))
	}
	a.Note = join(a.Note, note)
	return err == nil
}

// decode undoes the compression that was asked for, also if the body is compressed
// without saying so. A body in another encoding is not kept if the request held secrets,
// which could not be found in it.
func decode(
	resp *http.Response, secrets secretTexts,
) (decoded io.Reader, note string, done func()) {
	done = func() {}
	encoding := resp.Header.Get("Content-Encoding")
	switch strings.ToLower(encoding) {
	case "", "identity":
		encoding = ""
	case "gzip", "x-gzip":
	default:
		known := printable(secrets.hide(encoding), 40)
		if slices.ContainsFunc(secrets.known, func(known secretText) bool { return known.sent }) {
			return http.NoBody, "the body is not kept: in the encoding " + known +
				" secrets could not be masked", done
		}
		return resp.Body, "the body is kept as it came, encoded as " + known, done
	}
	buffered := bufio.NewReader(resp.Body)
	magic, err := buffered.Peek(2)
	if err != nil || !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		if len(magic) > 0 && encoding != "" {
			note = "the body claims to be gzip and is not"
		}
		return buffered, note, done
	}
	unzip, ok := gzipReaders.Get().(*gzip.Reader)
	if !ok {
		unzip = new(gzip.Reader)
	}
	_ = unzip.Reset(buffered) // reading returns its error
	return unzip, "", func() { gzipReaders.Put(unzip) }
}

// join joins two notes, either of which may be empty.
func join(first, second string) string {
	if first == "" || second == "" {
		return first + second
	}
	return first + "; " + second
}

const tooManyHeaders = "not all headers of the answer are kept"

// logHeaders makes the headers of an answer safe to log: sorted, lower case, printable
// and bounded, without the secrets. Cookies are masked: they are credentials of the
// endpoint's own infrastructure.
func logHeaders(header http.Header, secrets secretTexts) (fields []Header, note string) {
	for name, values := range header {
		for _, value := range values {
			if strings.EqualFold(name, "set-cookie") {
				value = Masked
			}
			fields = append(fields, Header{Name: strings.ToLower(name), Value: value})
		}
	}
	slices.SortStableFunc(fields, func(a, b Header) int { return strings.Compare(a.Name, b.Name) })
	if len(fields) > maxLogHeaders {
		fields, note = fields[:maxLogHeaders], tooManyHeaders
	}
	size := 0
	for i := range fields {
		fields[i].Name = printable(secrets.hide(fields[i].Name), maxHeaderName)
		fields[i].Value = printable(secrets.hide(fields[i].Value), maxHeaderValue)
		if size += len(fields[i].Name) + len(fields[i].Value); size > maxLogHeaderBytes {
			return fields[:i], tooManyHeaders
		}
	}
	return fields, note
}

// take records a final answer without the secrets. It returns whether reading on to the
// end of the body makes the connection reusable.
func (a *Attempt) take(
	ctx context.Context, resp *http.Response, secrets secretTexts, now time.Time,
) (intact bool) {
	if a.Status, a.Protocol = resp.StatusCode, resp.Proto; resp.ProtoMajor == 2 {
		a.Protocol = "HTTP/2" // its usual name
	}
	a.ResponseHeaders, a.Note = logHeaders(resp.Header, secrets)
	a.Class = statusClass(a.Status)
	if AsksForDelay(a.Status) {
		a.RetryAfter = parseRetryAfter(resp.Header.Get("Retry-After"), answeredAt(resp.Header, now))
	}
	if a.Class == ClassProtocol {
		// 101 switches the connection to another protocol: there is no body.
		a.Cause, a.Error = CauseBadStatus, fmt.Sprintf("%s: %d", CauseBadStatus.Text(), a.Status)
		return false
	}
	if a.Class != "" {
		// The endpoint's own reason phrase could contain anything.
		a.Cause = CauseStatus
		a.Error = strings.TrimSpace(fmt.Sprintf("%s %d %s", CauseStatus.Text(), a.Status,
			http.StatusText(a.Status)))
	}
	return a.readBody(ctx, resp, secrets)
}
