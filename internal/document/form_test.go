package document_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"drawbridge/internal/document"
	"drawbridge/internal/document/documenttest"
	"drawbridge/internal/lending"
)

// small are limits that a test reaches with little content.
func small() document.Limits {
	return document.Limits{
		File: 2000, Files: 3000, Metadata: 40, Value: 20, Other: 500, Heads: 1 << 20, Parts: 6,
	}
}

// read reads a form of the given parts under the default limits.
func read(
	t *testing.T, bucket document.Bucket, parts ...documenttest.Part,
) (*document.Form, error) {
	t.Helper()
	body, contentType := documenttest.Multipart(parts...)
	return document.ReadForm(t.Context(), bytes.NewReader(body), contentType,
		document.DefaultLimits(), bucket)
}

// refusal requires err to be a refusal and returns it.
func refusal(t *testing.T, err error) *lending.Error {
	t.Helper()
	refused, ok := errors.AsType[*lending.Error](err)
	if !ok {
		t.Fatalf("error %v, want a refusal", err)
	}
	return refused
}

func TestReadFormStoresFilesAndValues(t *testing.T) {
	t.Parallel()
	eachBucket(t, func(t *testing.T, bucket document.Bucket) {
		pdf, docx := documenttest.PDF(0), documenttest.DOCX()
		form, err := read(t, bucket,
			documenttest.Value("updatedLoanAmount", "900.00"),
			documenttest.File("Permit 7.PDF", pdf),
			documenttest.Value("unknown", "is skipped"),
			documenttest.Value("metadata", `{"inspector":"Ž"}`),
			documenttest.File(`C:\docs\report.docx`, docx),
			documenttest.Value("projectCompletedEarly", ""),
		)
		if err != nil {
			t.Fatal(err)
		}
		wantValues := map[string]string{
			"updatedLoanAmount": "900.00", "metadata": `{"inspector":"Ž"}`, "projectCompletedEarly": "",
		}
		if diff := cmp.Diff(wantValues, form.Values); diff != "" {
			t.Errorf("values (-want +got):\n%s", diff)
		}
		if len(form.Files) != 2 {
			t.Fatalf("%d files, want 2", len(form.Files))
		}
		store := document.NewStore(bucket)
		for i, want := range []struct {
			name, contentType string
			content           []byte
		}{
			{"Permit 7.PDF", "application/pdf", pdf},
			{"report.docx", "application/vnd.openxmlformats-officedocument." +
				"wordprocessingml.document", docx},
		} {
			file := form.Files[i]
			hash := sha256.Sum256(want.content)
			if file.Name != want.name || file.ContentType != want.contentType ||
				file.Size != int64(len(want.content)) || file.SHA256 != hex.EncodeToString(hash[:]) {
				t.Errorf("file %d is %+v", i, file)
			}
			if strings.Contains(file.Key, "ermit") || !strings.Contains(file.Key, file.UID.String()) {
				t.Errorf("key %q does not follow from the uid alone", file.Key)
			}
			opened, err := store.Open(t.Context(), file.Key)
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(opened)
			if err = errors.Join(err, opened.Close()); err != nil || !bytes.Equal(content, want.content) {
				t.Errorf("file %d came back with %d bytes, %v", i, len(content), err)
			}
		}
	})
}

func TestFormKeepAndDiscard(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		settle func(ctx context.Context, form *document.Form) error
		kept   bool
	}{
		"keep":    {func(ctx context.Context, f *document.Form) error { return f.Keep(ctx) }, true},
		"discard": {func(ctx context.Context, f *document.Form) error { return f.Discard(ctx) }, false},
		"discard after keep": {func(ctx context.Context, f *document.Form) error {
			return errors.Join(f.Keep(ctx), f.Discard(ctx))
		}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachBucket(t, func(t *testing.T, bucket document.Bucket) {
				form, err := read(t, bucket,
					documenttest.File("a.pdf", documenttest.PDF(0)),
					documenttest.File("b.png", documenttest.PNG()))
				if err != nil {
					t.Fatal(err)
				}
				if got := stored(t, bucket); len(got) != 4 {
					t.Fatalf("%q before settling, want two documents and two markers", got)
				}
				want := []string{}
				if test.kept {
					want = []string{form.Files[0].Key, form.Files[1].Key}
				}
				// The context of an aborted upload has ended when it is cleaned up.
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				if err := test.settle(ended, form); err != nil {
					t.Fatal(err)
				}
				slices.Sort(want)
				if diff := cmp.Diff(want, stored(t, bucket)); diff != "" {
					t.Errorf("stored (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestReadFormEmptyBody(t *testing.T) {
	t.Parallel()
	var digests []string
	for _, contentType := range []string{"", "application/json", "multipart/form-data; boundary=x"} {
		bucket, _ := folderBucket(t)
		form, err := document.ReadForm(t.Context(), strings.NewReader(""), contentType,
			document.DefaultLimits(), bucket)
		if err != nil || len(form.Values) > 0 || len(form.Files) > 0 {
			t.Errorf("%q: form %+v, error %v", contentType, form, err)
			continue
		}
		digests = append(digests, fmt.Sprintf("%x", form.Digests()[0]))
	}
	body, contentType := documenttest.Multipart()
	form, err := document.ReadForm(t.Context(), bytes.NewReader(body), contentType,
		document.DefaultLimits(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, digest := range digests {
		if digest != fmt.Sprintf("%x", form.Digests()[0]) {
			t.Errorf("digest %s of no body differs from that of no parts", digest)
		}
	}
}

// refused is a form that must be refused: its code, and for each error the field
// and a piece of the message.
type refused struct {
	parts []documenttest.Part
	code  lending.Code
	errs  [][2]string
}

func refusedForms() map[string]refused {
	value, file := documenttest.Value, documenttest.File
	pdf := documenttest.PDF(0)
	parts := func(parts ...documenttest.Part) []documenttest.Part { return parts }
	problem := func(pairs ...string) (errs [][2]string) {
		for i := 0; i < len(pairs); i += 2 {
			errs = append(errs, [2]string{pairs[i], pairs[i+1]})
		}
		return errs
	}
	return map[string]refused{
		"file too large": {
			parts(file("big.pdf", documenttest.PDF(2001))),
			lending.CodePayloadTooLarge, problem("files", `"big.pdf" is larger than 2000 bytes`),
		},
		"files together too large": {
			parts(file("a.pdf", documenttest.PDF(1800)), file("b.pdf", documenttest.PDF(1201)),
				file("c.png", documenttest.PNG())),
			lending.CodePayloadTooLarge, problem("files", `3000 bytes; the limit is exceeded at "b.pdf"`),
		},
		"endless unknown part": {
			parts(value("x", strings.Repeat("x", 3501)), value("y", "")),
			lending.CodePayloadTooLarge, problem("body", "larger than 3500 bytes"),
		},
		"unknown parts together": {
			parts(value("x", strings.Repeat("x", 3000)), value("y", strings.Repeat("y", 501))),
			lending.CodePayloadTooLarge, problem("body", "larger than 3500 bytes"),
		},
		"metadata too large": {
			parts(value("metadata", strings.Repeat("x", 41))),
			lending.CodePayloadTooLarge, problem("metadata", `"metadata" is longer than 40 bytes`),
		},
		"value too long": {
			parts(value("updatedLoanAmount", strings.Repeat("1", 21))),
			lending.CodeValidation, problem("updatedLoanAmount", "longer than 20 bytes"),
		},
		"value twice": {
			parts(value("metadata", "{}"), value("metadata", "{}")),
			lending.CodeValidation, problem("metadata", `"metadata" is given more than once`),
		},
		"value twice, first wrong": {
			parts(value("metadata", "\x00"), value("metadata", "{}")),
			lending.CodeValidation, problem("metadata", "without NUL", "metadata", "more than once"),
		},
		"part without a name": {
			parts(value("metadata", "{}"), value("", "x")),
			lending.CodeValidation, problem("body", "part 2 has no name"),
		},
		"invalid UTF-8": {
			parts(value("projectCompletedEarly", "\xff")),
			lending.CodeValidation, problem("projectCompletedEarly", "must be UTF-8"),
		},
		"file without a name": {
			parts(value("files", string(pdf))),
			lending.CodeValidation, problem("files", "part 1, a file, has no file name"),
		},
		"too many parts": {
			slices.Repeat(parts(file("", nil)), 7),
			lending.CodeValidation, problem("body", "more than 6 files"),
		},
		"too long unknown parts": {
			slices.Repeat(parts(value(strings.Repeat("x", 8000), "")), 132),
			lending.CodePayloadTooLarge, problem("body", "of unknown parts are larger than 1 MiB"),
		},
		"too many unknown parts": {
			slices.Repeat(parts(value("x", "")), 28_000),
			lending.CodePayloadTooLarge, problem("body", "of unknown parts are larger than 1 MiB"),
		},
		"too many nameless parts": {
			slices.Repeat(parts(value("", "")), 7),
			lending.CodeValidation, problem("body", "no name", "body", "no name", "body", "no name",
				"body", "no name", "body", "no name", "body", "no name", "body", "more than 6 files"),
		},
		"a value over and over": {
			slices.Repeat(parts(value("metadata", "")), 8),
			lending.CodeValidation, problem("body", "more than 6 files", "metadata", "more than once",
				"metadata", "more than once", "metadata", "more than once", "metadata",
				"more than once", "metadata", "more than once", "metadata", "more than once"),
		},
		"headers too long": {
			parts(value(strings.Repeat("x", 9000), "")),
			lending.CodeValidation, problem("body", "headers of a part are longer than 8 KiB"),
		},
		"headers endless": {
			parts(value(strings.Repeat("x", 100_000), "")),
			lending.CodeValidation, problem("body", "headers of a part are longer than 8 KiB"),
		},
		"type by name": {
			parts(file("run.exe", []byte("MZ"))),
			lending.CodeFileTypeNotAllowed, problem("files", `"run.exe" is not of an accepted type`),
		},
		"type by content": {
			parts(file("run.pdf", []byte("<html></html>"))),
			lending.CodeFileTypeNotAllowed,
			problem("files", "its content is text/html; the accepted types are PDF"),
		},
		"empty file": {
			parts(file("a.pdf", nil)),
			lending.CodeFileTypeNotAllowed, problem("files", `"a.pdf" is empty`),
		},
		"everything at once": {
			parts(file("good.pdf", pdf), file("a.exe", []byte("MZ")), value("metadata", "\xff"),
				file("b.pdf", documenttest.PDF(2100)), value("updatedLoanAmount", "1")),
			lending.CodeFileTypeNotAllowed, problem("files", "a.exe",
				"files", `"b.pdf" is larger`, "metadata", "UTF-8"),
		},
		"in the order of the checks": {
			parts(value("metadata", "\xff"), file("a.exe", []byte("MZ")),
				value("updatedLoanAmount", "\xff"), value("", "x")),
			lending.CodeValidation, problem("updatedLoanAmount", "UTF-8", "body", "no name",
				"files", "a.exe", "metadata", "UTF-8"),
		},
		"type before metadata": {
			parts(value("metadata", "\xff"), file("a.exe", []byte("MZ"))),
			lending.CodeFileTypeNotAllowed, problem("files", "a.exe", "metadata", "UTF-8"),
		},
		"too large at first": {
			parts(file("b.pdf", documenttest.PDF(2100)), value("updatedLoanAmount", "\xff")),
			lending.CodePayloadTooLarge, problem("files", `"b.pdf" is larger`,
				"updatedLoanAmount", "UTF-8"),
		},
	}
}

func TestReadFormRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range refusedForms() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bucket, _ := folderBucket(t)
			body, contentType := documenttest.Multipart(test.parts...)
			form, err := document.ReadForm(t.Context(), bytes.NewReader(body), contentType, small(), bucket)
			refusal := refusal(t, err)
			if refusal.Code != test.code || refusal.Message != refusal.Details[0].Message {
				t.Errorf("refused with %s %q, want %s", refusal.Code, refusal.Message, test.code)
			}
			if len(refusal.Details) != len(test.errs) {
				t.Fatalf("details %+v, want %q", refusal.Details, test.errs)
			}
			for i, problem := range refusal.Details {
				if problem.Field != test.errs[i][0] || !strings.Contains(problem.Message, test.errs[i][1]) {
					t.Errorf("detail %d is %+v, want %q", i, problem, test.errs[i])
				}
			}
			if form == nil || len(form.Files) > 0 {
				t.Errorf("form %+v, want one without files", form)
			}
			if got := stored(t, bucket); len(got) > 0 {
				t.Errorf("%q left in the bucket", got)
			}
		})
	}
}

func TestReadFormAtTheLimits(t *testing.T) {
	t.Parallel()
	bucket, _ := folderBucket(t)
	parts := append(slices.Repeat([]documenttest.Part{documenttest.Value("x", "")}, 20_000),
		documenttest.File("a.pdf", documenttest.PDF(2000)),
		documenttest.File("b.pdf", documenttest.PDF(1000)),
		documenttest.Value("metadata", strings.Repeat("m", 40)),
		documenttest.Value("updatedLoanAmount", strings.Repeat("1", 20)),
		documenttest.Value("updatedDisbursementAmount", ""),
		documenttest.Value("projectCompletedEarly", ""),
		documenttest.Value("other", strings.Repeat("x", 440)),
	)
	parts = append(parts, slices.Repeat([]documenttest.Part{documenttest.File("", nil)}, 4)...)
	body, contentType := documenttest.Multipart(parts...)
	form, err := document.ReadForm(t.Context(), bytes.NewReader(body), contentType, small(), bucket)
	if err != nil {
		t.Fatal(err)
	}
	if len(form.Files) != 2 || len(form.Values) != 4 {
		t.Errorf("form %+v", form)
	}
}

// TestReadFormDefaultLimits sends a little more than the specification allows;
// TestUploadMemory sends exactly what it allows.
func TestReadFormDefaultLimits(t *testing.T) {
	t.Parallel()
	full := 10 * mebibyte
	tests := map[string][]int{
		"a byte more in one":     {full + 1},
		"a small file above all": {full, full, full, full, full, 700},
	}
	for name, sizes := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bucket, _ := folderBucket(t)
			var parts []documenttest.Part
			for i, size := range sizes {
				parts = append(parts, documenttest.File(fmt.Sprintf("%d.pdf", i), documenttest.PDF(size)))
			}
			_, err := read(t, bucket, parts...)
			if got := lending.ErrorCode(err); got != lending.CodePayloadTooLarge {
				t.Errorf("code %q (%v)", got, err)
			}
		})
	}
}

func TestReadFormLeniency(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		head, content string
		values        map[string]string
		files         int
	}{
		"empty file input of a browser": {
			`Content-Disposition: form-data; name="files"; filename=""` +
				"\r\nContent-Type: application/octet-stream", "", map[string]string{}, 0,
		},
		"files without content": {
			`Content-Disposition: form-data; name="files"`, "", map[string]string{}, 0,
		},
		"metadata as a file": {
			`Content-Disposition: form-data; name="metadata"; filename="m.json"` +
				"\r\nContent-Type: application/json", "{}", map[string]string{"metadata": "{}"}, 0,
		},
		"binary transfer encoding": {
			`Content-Disposition: form-data; name="metadata"` +
				"\r\nContent-Transfer-Encoding: BINARY", "{}", map[string]string{"metadata": "{}"}, 0,
		},
		"wrong content type of a file": {
			`Content-Disposition: form-data; name="files"; filename="a.pdf"` +
				"\r\nContent-Type: text/html", string(documenttest.PDF(0)), map[string]string{}, 1,
		},
		"encoded file name": {
			`Content-Disposition: form-data; name="files"; filename*=UTF-8''%C3%A9.pdf`,
			string(documenttest.PDF(0)),
			map[string]string{},
			1,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bucket, _ := folderBucket(t)
			body := "--b\r\n" + test.head + "\r\n\r\n" + test.content + "\r\n--b--\r\n"
			form, err := document.ReadForm(t.Context(), strings.NewReader(body),
				"multipart/form-data; boundary=b", document.DefaultLimits(), bucket)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.values, form.Values); diff != "" || len(form.Files) != test.files {
				t.Errorf("%d files, want %d; values (-want +got):\n%s", len(form.Files), test.files, diff)
			}
		})
	}
}

// TestReadFormCleansHeads sends control characters in the name of a file, which is stored without
// them, and in a part that is ignored. Content that looks like headers keeps its bytes.
func TestReadFormCleansHeads(t *testing.T) {
	t.Parallel()
	bucket, _ := folderBucket(t)
	for _, c := range []string{
		"\x00", "\x01", "\b", "\v", "\r", "\x1b", "\x1f", "\x7f", "\t", "\x00\x00\r",
	} {
		for lineBreak, other := range map[string]string{"\r\n": "\n--b\n", "\n": "\n--bx\n"} {
			content := string(documenttest.PDF(0)) + c + " " + other + "X: " + c + "\r\n--" + c
			body := strings.Join([]string{
				"preamble" + c + ".", "--b" + c + "x", "--b",
				`Content-Disposition: form-data; name="files"; filename="a` + c + `b.pdf"`, "", content,
				"--b", `Content-Disposition: form-data; name="x` + c + `"; filename="` + c + `"`, "", "",
				"--b--",
			}, lineBreak)
			for _, from := range []io.Reader{
				strings.NewReader(body), iotest.OneByteReader(strings.NewReader(body)),
			} {
				form, err := document.ReadForm(t.Context(), from, "multipart/form-data; boundary=b",
					document.DefaultLimits(), bucket)
				if err != nil {
					t.Errorf("%q, lines end in %q: %v", c, lineBreak, err)
					continue
				}
				want := fmt.Sprintf("%x", sha256.Sum256([]byte(content)))
				if len(form.Files) != 1 || form.Files[0].Name != "ab.pdf" ||
					form.Files[0].SHA256 != want {
					t.Errorf("%q, lines end in %q: %+v", c, lineBreak, form.Files)
				}
			}
		}
	}
}

func TestReadFormEndings(t *testing.T) {
	t.Parallel()
	const crlf = "--b\r\nContent-Disposition: form-data; name=\"metadata\"\r\n\r\n{}\r\n--b--"
	for name, body := range map[string]string{
		"bare":             crlf,
		"line break":       crlf + "\r\n",
		"epilogue":         crlf + "\r\nand so on",
		"preamble":         "preamble\r\n" + crlf,
		"line feeds":       strings.ReplaceAll(crlf, "\r", "") + "\n",
		"line feeds, bare": strings.ReplaceAll(crlf, "\r", ""),
		"space behind":     crlf + "  \r\n",
		"no parts, bare":   "--b--",
		"no parts, CRLF":   "--b--\r\n",
	} {
		for _, pieces := range []func(io.Reader) io.Reader{
			iotest.OneByteReader, iotest.DataErrReader,
		} {
			form, err := document.ReadForm(t.Context(), pieces(strings.NewReader(body)),
				"multipart/form-data; boundary=b", document.DefaultLimits(), nil)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if strings.HasPrefix(name, "no parts") != (form.Values["metadata"] != "{}") {
				t.Errorf("%s: values %q", name, form.Values)
			}
		}
	}
}

func TestReadFormTakesAnEmptyJSONObjectForAnEmptyForm(t *testing.T) {
	t.Parallel()
	limits := document.DefaultLimits()
	empty, err := document.ReadForm(t.Context(), strings.NewReader(""), "", limits, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"{}", " {\r\n} \n"} {
		form, err := document.ReadForm(t.Context(), strings.NewReader(body),
			"application/json; charset=utf-8", limits, nil)
		if err != nil || len(form.Values) > 0 || !slices.Equal(form.Digests(), empty.Digests()) {
			t.Errorf("%q: %+v, %v", body, form, err)
		}
	}
	limits.DocumentsOnly = true
	_, err = document.ReadForm(t.Context(), strings.NewReader("{}"), "application/json", limits, nil)
	if lending.ErrorCode(err) != lending.CodeUnsupportedMediaType {
		t.Errorf("a certificate as JSON: %v", err)
	}
}

func TestReadFormMalformed(t *testing.T) {
	t.Parallel()
	const form = "multipart/form-data; boundary=b"
	const head = "--b\r\nContent-Disposition: form-data; name=\"metadata\"\r\n"
	const media, invalid = lending.CodeUnsupportedMediaType, lending.CodeValidation
	tests := map[string]struct {
		contentType, body string
		code              lending.Code
		mention           string
	}{
		"other content type": {"application/xml", "<a/>", media, "multipart/form-data"},
		"JSON that says something": {
			"application/json", `{"projectCompletedEarly":true}`, media, "a JSON body must be {}",
		},
		"no JSON object":     {"application/json", "null", media, "a JSON body must be {}"},
		"no JSON":            {"application/json", "{", media, "a JSON body must be {}"},
		"long JSON":          {"application/json", strings.Repeat(" ", 2000) + "{}", media, "must be {}"},
		"other multipart":    {"multipart/mixed; boundary=b", "--b--", media, "multipart/form-data"},
		"no content type":    {"", "{}", media, "multipart/form-data"},
		"no boundary":        {"multipart/form-data", "--b--", invalid, "boundary"},
		"empty boundary":     {`multipart/form-data; boundary=""`, "----", invalid, "boundary"},
		"long boundary":      {form + strings.Repeat("b", 70), "x", invalid, "boundary"},
		"broken parameters":  {"multipart/form-data; boundary", "x", invalid, "boundary"},
		"no boundary in it":  {form, "hello", invalid, "final boundary"},
		"another boundary":   {form, "--c\r\n\r\n\r\n--c--\r\n", invalid, "final boundary"},
		"endless preamble":   {form, strings.Repeat("preamble\r\n", 10_000), invalid, "headers"},
		"cut in the head":    {form, head, invalid, "final boundary"},
		"cut in the content": {form, head + "\r\n{\"a\":", invalid, "final boundary"},
		"cut behind it":      {form, head + "\r\n{}\r\n--b\r\n", invalid, "final boundary"},
		"header, no colon":   {form, "--b\r\nnonsense\r\n\r\n{}\r\n--b--\r\n", invalid, "malformed"},
		"NUL in a header":    {form, "--b\r\nX: a\x00b\r\n\r\n{}\r\n--b--\r\n", invalid, "malformed"},
		"encoded content": {
			form, head + "Content-Transfer-Encoding: base64\r\n\r\ne30=\r\n--b--\r\n",
			invalid, "Content-Transfer-Encoding",
		},
		"attachment, not a field": {form, "--b\r\nContent-Disposition: attachment; name=\"x\"\r\n\r\n" +
			"{}\r\n--b--\r\n", invalid, "part 1 has no name"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			form, err := document.ReadForm(t.Context(), strings.NewReader(test.body), test.contentType,
				document.DefaultLimits(), nil)
			refusal := refusal(t, err)
			if refusal.Code != test.code || !strings.Contains(refusal.Message, test.mention) {
				t.Errorf("refused with %s %q, want %s and %q", refusal.Code, refusal.Message,
					test.code, test.mention)
			}
			if form == nil {
				t.Error("no form, although all of the body arrived")
			}
		})
	}
}
