package compress_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"drawbridge/internal/compress"
)

func TestAccepted(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]bool{
		"": false, "gzip": true, "gzip, deflate, br": true, "br;q=1.0, gzip;q=0.8": true,
		"*": true, "identity": false, "gzip;q=0": false, "gzip; q=0.0": false, "xgzip": false,
		"gzip;q=0, *": false, "*, gzip;q=0": false, "*;q=0, gzip": true,
	} {
		request := &http.Request{Header: http.Header{"Accept-Encoding": {accept}}}
		if got := compress.Accepted(request); got != want {
			t.Errorf("Accept-Encoding %q: %v, want %v", accept, got, want)
		}
	}
}

// Writers are shared: the output of one page must not contain parts of another.
func TestGzipAtOnce(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for i := range 50 {
		body := []byte(strings.Repeat("page "+strings.Repeat("x", i), 100+i))
		lazily := compress.Lazily(body)
		all.Go(func() {
			for _, zipped := range [][]byte{compress.Gzip(body), lazily()} {
				reader, err := gzip.NewReader(bytes.NewReader(zipped))
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := io.ReadAll(reader); err != nil || !bytes.Equal(got, body) {
					t.Errorf("%d bytes came back as %d: %v", len(body), len(got), err)
				}
			}
		})
	}
	all.Wait()
	noise := make([]byte, 1<<10)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	if zipped := compress.Gzip(noise); zipped != nil {
		t.Errorf("noise of %d bytes became %d", len(noise), len(zipped))
	}
}
