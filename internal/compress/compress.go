// Package compress makes the gzip form of HTTP responses.
package compress

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// writers are pooled, since one takes 1.2 MB.
var writers = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// Gzip returns the gzip form of body, nil where it saves less than a tenth.
func Gzip(body []byte) []byte {
	var zipped bytes.Buffer
	writer, _ := writers.Get().(*gzip.Writer) // nothing else is kept there
	defer writers.Put(writer)
	writer.Reset(&zipped)
	_, _ = writer.Write(body) // a buffer takes every write
	_ = writer.Close()
	if zipped.Len() > len(body)*9/10 {
		return nil
	}
	return zipped.Bytes()
}

// Lazily returns a function that computes Gzip of body on its first call.
func Lazily(body []byte) func() []byte {
	return sync.OnceValue(func() []byte { return Gzip(body) })
}

// Accepted reports whether the client of a request accepts gzip; a weight of 0 refuses it, and *
// stands for every encoding that is not named.
func Accepted(request *http.Request) bool {
	others := false
	for part := range strings.SplitSeq(request.Header.Get("Accept-Encoding"), ",") {
		coding, params, _ := strings.Cut(part, ";")
		weight, found := strings.CutPrefix(strings.TrimSpace(params), "q=")
		q, err := strconv.ParseFloat(weight, 64)
		takes := !found || err != nil || q > 0
		switch strings.TrimSpace(coding) {
		case "gzip":
			return takes
		case "*":
			others = takes
		}
	}
	return others
}
