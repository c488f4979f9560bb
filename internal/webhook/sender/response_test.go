package sender

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"drawbridge/internal/secret"
)

// zipped compresses text.
func zipped(text string) string {
	var buffer bytes.Buffer
	writer := gzip.NewWriter(&buffer)
	_, _ = io.WriteString(writer, text)
	_ = writer.Close()
	return buffer.String()
}

// sized is an answer with a length; head holds further header lines.
func sized(head, body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\n%scontent-length: %d\r\n\r\n%s", head, len(body), body)
}

func TestSendKeepsTheBody(t *testing.T) {
	t.Parallel()
	const gz = "content-encoding: gzip\r\n"
	long := strings.Repeat("0123456789abcdef", maxBody/16)
	bomb := zipped(strings.Repeat("\x00", 4<<20))
	empties := strings.Repeat(zipped(""), 2*maxWire/len(zipped("")))
	tests := []struct {
		name, answer, body, note string
		truncated                bool
	}{
		{"none", sized("", ""), "", "", false},
		{"text", sized("", "thanks"), "thanks", "", false},
		{"up to the close", "HTTP/1.1 200 OK\r\n\r\nthanks", "thanks", "", false},
		{
			"chunks", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" +
				"3\r\ntha\r\n3\r\nnks\r\n0\r\n\r\n",
			"thanks", "", false,
		},
		{"chunks with trailers", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" +
			"6\r\nthanks\r\n0\r\nx: y\r\n\r\n", "thanks", "", false},
		{"binary", sized("", "\x00\xff\xfe"), "\x00\xff\xfe", "", false},
		{"exactly what is kept", sized("", long), long, "", false},
		{"one byte more", sized("", long+"x"), long, "longer than the 16 KiB", true},
		{"a megabyte", sized("", strings.Repeat(long, 64)), long, "longer than the 16 KiB", true},
		{"gzip", sized(gz, zipped("thanks")), "thanks", "", false},
		{"gzip in capitals", sized("Content-Encoding: GZIP\r\n", zipped("thanks")), "thanks", "", false},
		{"two gzip members", sized(gz, zipped("tha")+zipped("nks")), "thanks", "", false},
		{"gzip of nothing", sized(gz, zipped("")), "", "", false},
		{"gzip claimed, no body", sized(gz, ""), "", "", false},
		{"gzip claimed, plain body", sized(gz, "thanks"), "thanks", "claims to be gzip", false},
		{
			"gzip with a broken head", sized(gz, "\x1f\x8b\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), "",
			"could not be decompressed", false,
		},
		{
			"gzip with broken content", sized(gz, zipped("x")[:10]+"\xff\xff\xff\xff"), "",
			"could not be decompressed", false,
		},
		{
			"gzip with a wrong sum", sized(gz, zipped("thanks")[:20]+"\x00\x00\x00\x00\x00\x00\x00\x00"),
			"thanks", "could not be decompressed", false,
		},
		{"gzip cut off", sized(gz, zipped(long)[:20]), "", "broke off", false},
		{"gzip bomb", sized(gz, bomb), strings.Repeat("\x00", maxBody), "longer than the 16 KiB", true},
		{"gzip that never yields anything", sized(gz, empties), "", "more than 1024 KiB", false},
		{
			"another encoding", sized("content-encoding: br\r\n", "\x0b\x02"), "\x0b\x02",
			"as it came, encoded as br", false,
		},
		{
			"shorter than announced", "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nthanks", "thanks",
			"broke off; 6 bytes", false,
		},
		{
			"chunks cut off", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n6\r\nthanks\r\n",
			"thanks", "broke off; 6 bytes", false,
		},
		{
			"broken chunks", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n6\r\nthanks\r\nzz\r\n",
			"thanks", "broke off; 6 bytes", false,
		},
	}
	sender := newTestSender(t, nil)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			end := serve(t, nil, once(test.answer))
			attempt := sender.Send(t.Context(), hook(end.plain()))
			if !attempt.Delivered() || attempt.Status != 200 || attempt.Error != "" {
				t.Fatalf("status %d, class %q, error %q", attempt.Status, attempt.Class, attempt.Error)
			}
			if got := string(attempt.ResponseBody); got != test.body && test.name != "gzip cut off" {
				t.Errorf("body of %d bytes, want %d: %.60q", len(got), len(test.body), got)
			}
			if (attempt.Note == "") != (test.note == "") || !strings.Contains(attempt.Note, test.note) ||
				attempt.Truncated != test.truncated {
				t.Errorf("note %q, truncated %v; want %q", attempt.Note, attempt.Truncated, test.note)
			}
		})
	}
}

// An endpoint may echo the request in a form that cannot be searched: none of it is kept.
func TestSendKeepsNoHiddenEcho(t *testing.T) {
	t.Parallel()
	const token = "tok_partner_0123456789abcdef"
	var deflated bytes.Buffer
	deflate := zlib.NewWriter(&deflated)
	_, _ = io.WriteString(deflate, token)
	_ = deflate.Close()
	twice := sized("content-encoding: gzip, gzip\r\n", zipped(zipped(token)))
	for name, test := range map[string]struct{ answer, body, note string }{
		"gzip":              {sized("content-encoding: gzip\r\n", zipped(token)), Masked, ""},
		"gzip, not said":    {sized("", zipped(token)), Masked, ""},
		"deflate":           {sized("content-encoding: deflate\r\n", deflated.String()), "", "not kept"},
		"gzip, once more":   {twice, "", "not kept"},
		"a secret's header": {sized("content-encoding: br\r\n", token), "", "not kept"},
	} {
		request := hook(serve(t, nil, once(test.answer)).plain())
		if request.Auth, request.Secret = AuthBearer, secret.New(token); name == "a secret's header" {
			request.Auth, request.Headers = AuthNone, []Header{{Name: "x-token", Value: token}}
		}
		attempt := newTestSender(t, nil).Send(t.Context(), request)
		if !attempt.Delivered() || string(attempt.ResponseBody) != test.body ||
			!strings.Contains(attempt.Note, test.note) {
			t.Errorf("%s: class %q, body %q, note %q",
				name, attempt.Class, attempt.ResponseBody, attempt.Note)
		}
	}
}

// The status is the receipt: what happens to the body after it changes nothing.
func TestSendBodyThatGoesWrong(t *testing.T) {
	t.Parallel()
	const open = "HTTP/1.1 %d x\r\ntransfer-encoding: chunked\r\n\r\n6\r\nthanks\r\n"
	ways := map[string]struct {
		script func(*endpointConn)
		note   string
	}{
		"hangs": {func(c *endpointConn) { c.untilClosed() }, "still coming when the time ran out"},
		"drips": {func(c *endpointConn) {
			ticker := time.NewTicker(10 * time.Millisecond)
			defer ticker.Stop()
			for range ticker.C {
				if _, err := io.WriteString(c, "1\r\nx\r\n"); err != nil {
					return
				}
			}
		}, "still coming when the time ran out"},
		"is reset":  {(*endpointConn).reset, "broke off"},
		"is closed": {func(*endpointConn) {}, "broke off"},
		"never ends": {func(c *endpointConn) {
			chunk := fmt.Sprintf("1000\r\n%s\r\n", strings.Repeat("y", 0x1000))
			for {
				if _, err := io.WriteString(c, chunk); err != nil {
					return
				}
			}
		}, "longer than the 16 KiB"},
	}
	for name, way := range ways {
		for _, status := range []int{200, 202, 500} {
			t.Run(fmt.Sprintf("%s after %d", name, status), func(t *testing.T) {
				t.Parallel()
				end := serve(t, nil, func(c *endpointConn) {
					if _, err := c.request(); err == nil {
						c.say(fmt.Sprintf(open, status))
						way.script(c)
					}
				})
				right := func(a Attempt) bool {
					return a.Status == status && a.Class == statusClass(status) &&
						strings.HasPrefix(string(a.ResponseBody), "thanks") &&
						strings.Contains(a.Note, way.note)
				}
				request := func() Request { return hook(end.plain()) }
				attempt, limit := sendUntil(t, nil, request, right)
				if !right(attempt) {
					t.Errorf("status %d, class %q, note %q, body %.20q", attempt.Status, attempt.Class,
						attempt.Note, attempt.ResponseBody)
				}
				if attempt.Timings.Total > limit+3*time.Second {
					t.Errorf("it took %s", attempt.Timings.Total)
				}
			})
		}
	}
}

// Many endpoints that never stop sending cost bounded memory.
func TestSendEndlessBodiesNeedLittleMemory(t *testing.T) {
	const many = 500
	block := []byte(strings.Repeat("z", 64<<10))
	end := serve(t, nil, func(c *endpointConn) {
		if _, err := c.request(); err != nil {
			return
		}
		c.say("HTTP/1.1 200 OK\r\n\r\n")
		for {
			if _, err := c.Write(block); err != nil {
				return
			}
		}
	})
	sender := newTestSender(t, func(c *Config) { c.Timeout = 2 * time.Minute })
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	// Garbage that a busy machine has not collected yet does not count.
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(
		int64(before.Sys-before.HeapReleased) + 140<<20))
	attempts := make([]Attempt, many)
	var sending sync.WaitGroup
	for i := range attempts {
		sending.Go(func() { attempts[i] = sender.Send(t.Context(), hook(end.plain())) })
	}
	sending.Wait()
	runtime.ReadMemStats(&after)
	for _, attempt := range attempts {
		if !attempt.Delivered() || len(attempt.ResponseBody) != maxBody || !attempt.Truncated {
			t.Fatalf("class %q, error %q, body %d", attempt.Class, attempt.Error,
				len(attempt.ResponseBody))
		}
	}
	// The endpoint's side, in the same process, is included in the figure.
	if grown := (int64(after.Sys) - int64(before.Sys)) >> 20; grown > 150 {
		t.Errorf("%d endless bodies at once took %d MiB", many, grown)
	}
}

func TestSendLogsResponseHeaders(t *testing.T) {
	t.Parallel()
	end := serve(t, nil, respond("HTTP/1.1 503 x\r\nX-B: two\r\nx-b: three\r\nX-Raw: a\xffb\r\n"+
		"set-cookie: session=abc\r\nretry-after: 120\r\nx-a: one\r\ncontent-length: 0\r\n\r\n"))
	attempt := newTestSender(t, nil).Send(t.Context(), hook(end.plain()))
	want := "[content-length=0 retry-after=120 set-cookie=[hidden] x-a=one x-b=two x-b=three " +
		"x-raw=a\ufffdb]"
	var got []string
	for _, header := range attempt.ResponseHeaders {
		got = append(got, header.Name+"="+header.Value)
	}
	if fmt.Sprint(got) != want {
		t.Errorf("headers %v\nwant %s", got, want)
	}
	if attempt.RetryAfter != 2*time.Minute {
		t.Errorf("retry after %s", attempt.RetryAfter)
	}
}

func TestSendBoundsLoggedHeaders(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		head func(i int) string
		n    int
	}{
		{"many", func(i int) string { return fmt.Sprintf("x-%d: y\r\n", i) }, 500},
		{"large", func(i int) string {
			return fmt.Sprintf("x-%d: %s\r\n", i, strings.Repeat("y", 5000))
		}, 10},
	}
	sender := newTestSender(t, nil)
	for _, test := range tests {
		var head strings.Builder
		for i := range test.n {
			head.WriteString(test.head(i))
		}
		end := serve(t, nil, respond(sized(head.String(), "ok")))
		attempt := sender.Send(t.Context(), hook(end.plain()))
		size := 0
		for _, header := range attempt.ResponseHeaders {
			size += len(header.Name) + len(header.Value)
		}
		if !attempt.Delivered() || len(attempt.ResponseHeaders) > maxLogHeaders ||
			size > maxLogHeaderBytes || !strings.Contains(attempt.Note, "not all headers") {
			t.Errorf("%s: %d headers of %d bytes, note %q, error %q", test.name,
				len(attempt.ResponseHeaders), size, attempt.Note, attempt.Error)
		}
	}
}

// Some endpoints echo the request; the secrets must not reach the log.
func TestSendMasksSecretsInAnswers(t *testing.T) {
	t.Parallel()
	const token, key = "tok_0123456789abcdef", "key-0123456789"
	echo := func(status string) func(*endpointConn) {
		return func(c *endpointConn) {
			r, err := c.request()
			if err != nil {
				return
			}
			// The key also lies across the end of the part that is kept.
			body := strings.Join(r.head, "\n")
			body += strings.Repeat(".", maxBody-len(body)-4) + key
			c.say(fmt.Sprintf("HTTP/1.1 %s\r\nx-echo: %s\r\ncontent-length: %d\r\n\r\n%s", status, key,
				len(body), body))
		}
	}
	sender := newTestSender(t, nil)
	for _, status := range []string{"200 OK", "2x0 " + key, "401 x"} {
		end := serve(t, nil, echo(status))
		r := hook(end.plain())
		r.Auth, r.Secret = AuthBearer, secret.New(token)
		r.Headers = []Header{
			{Name: "x-api-key", Value: key},
			{Name: "cookie", Value: "session=" + key},
			{Name: "x-env", Value: "production", Plain: true},
		}
		attempt := sender.Send(t.Context(), r)
		shown := fmt.Sprintf("%+v %s", attempt, attempt.ResponseBody)
		if strings.Contains(shown, token) || strings.Contains(shown, key) ||
			strings.Contains(string(attempt.ResponseBody), key[:4]+"\x00") {
			t.Errorf("%s: the log shows a secret: %s", status, shown)
		}
		if attempt.Status == 200 && !strings.Contains(shown, "production") {
			t.Errorf("a harmless value is masked in the answer: %.300s", attempt.ResponseBody)
		}
	}
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text, want string
		limit            int
	}{
		{"plain", "hello", "hello", 10},
		{"control", "a\x00b\nc\x1b[31m", "a\ufffdb\ufffdc\ufffd[31m", 100},
		{"invalid UTF-8", "a\xffb", "a\ufffdb", 100},
		{"cut", "0123456789", "01234...", 8},
		{"cut inside a character", "01234ä6789", "01234...", 9},
		{"bidi override", "a\u202eb", "a\ufffdb", 100},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := printable(test.text, test.limit)
			if got != test.want || len(got) > test.limit || !utf8.ValidString(got) {
				t.Errorf("printable = %q, want %q", got, test.want)
			}
		})
	}
}

// No body in any encoding breaks the reader or its bounds.
func FuzzReadBody(f *testing.F) {
	f.Add("gzip", []byte(zipped("thanks")))
	f.Add("gzip", []byte(zipped(strings.Repeat("x", 1<<20))))
	f.Add("gzip", []byte("\x1f\x8b\x08"))
	f.Add("x-gzip", []byte("plain"))
	f.Add("", []byte(strings.Repeat("y", maxBody+1)))
	f.Add("br", []byte{0, 1, 2})
	f.Fuzz(func(t *testing.T, encoding string, raw []byte) {
		resp := &http.Response{
			Header: http.Header{"Content-Encoding": {encoding}},
			Body:   io.NopCloser(bytes.NewReader(raw)),
		}
		var got Attempt
		got.readBody(t.Context(), resp, secretTexts{})
		if kept := len(got.ResponseBody); kept > maxBody || !utf8.ValidString(got.Note) ||
			got.Truncated && kept < maxBody {
			t.Errorf("kept %d, truncated %v, note %q", kept, got.Truncated, got.Note)
		}
	})
}

// Whatever bytes an endpoint sends, the parser ends and the texts are clean.
func FuzzReadFinal(f *testing.F) {
	f.Add([]byte(ok200))
	f.Add([]byte("HTTP/1.1 103 x\r\n\r\n" + ok200))
	f.Add([]byte("HTTP/1.1 101 x\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 600 x\r\n\r\n"))
	f.Add([]byte("SSH-2.0-OpenSSH\r\n"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nx: \xff\x00\r\n\r\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c := newHTTP1(nil, endpoint{}, nil, nil, peer{})
		c.meter.source, c.meter.left = bytes.NewReader(raw), maxHead
		resp, err := readFinal(c.reader)
		if err != nil {
			text := answerError(t.Context(), c.meter.explain(err)).Error()
			if !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\r\n") {
				t.Errorf("error text %q", text)
			}
			return
		}
		var attempt Attempt
		attempt.take(t.Context(), resp, secretTexts{}, retryNow)
		for _, header := range attempt.ResponseHeaders {
			if !utf8.ValidString(header.Value) || strings.ContainsAny(header.Value, "\x00\r\n") {
				t.Errorf("header %q", header.Value)
			}
		}
		if attempt.Status >= 100 && attempt.Status < 200 && attempt.Status != 101 {
			t.Errorf("an informational status is final: %d", attempt.Status)
		}
	})
}
