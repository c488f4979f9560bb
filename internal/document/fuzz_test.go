package document_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"drawbridge/internal/document"
	"drawbridge/internal/document/documenttest"
	"drawbridge/internal/lending"
)

func addForms(f *testing.F) {
	for _, test := range refusedForms() {
		body, contentType := documenttest.MultipartWith("b", test.parts...)
		f.Add(contentType, body)
	}
	var files []documenttest.Part
	for extension, sample := range documenttest.Samples() {
		files = append(files, documenttest.File("a."+extension, sample))
	}
	for _, parts := range [][]documenttest.Part{nil, files[:2], {
		documenttest.Value("metadata", `{"inspector":"x"}`),
		documenttest.Value("updatedLoanAmount", "1.00"),
		documenttest.File("a.png", documenttest.PNG()),
	}} {
		body, contentType := documenttest.MultipartWith("b", parts...)
		f.Add(contentType, body)
		f.Add(contentType, body[:len(body)/2])
		f.Add(contentType, bytes.ReplaceAll(body, []byte("\r"), nil))
	}
	for _, c := range []string{"\x00", "\x1b", "\x7f", "\r", "\r\r"} {
		body, contentType := documenttest.MultipartWith("b", documenttest.Value("x", c),
			documenttest.File("a"+c+".png", documenttest.PNG()), documenttest.Value("y"+c, c))
		f.Add(contentType, body)
	}
	f.Add("application/json", []byte("{}"))
	f.Add("multipart/form-data; boundary=", []byte("--"))
}

// FuzzReadForm reads arbitrary bodies. Whatever they are, the result is one of those documented, it
// does not depend on how the bytes arrive, and a refusal leaves nothing behind. Where Go's own
// parser accepts the form too, the values agree.
func FuzzReadForm(f *testing.F) {
	addForms(f)
	bucket, _ := folderBucket(f)
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		whole, err := document.ReadForm(t.Context(), bytes.NewReader(body), contentType, small(), bucket)
		refused, isRefusal := errors.AsType[*lending.Error](err)
		if whole == nil || err != nil && !isRefusal {
			t.Fatalf("form %v, error %v", whole, err)
		}
		if isRefusal && (len(refused.Details) == 0 || !utf8.ValidString(refused.Message)) {
			t.Fatalf("refusal %+v", refused)
		}
		if isRefusal && len(stored(t, bucket)) > 0 {
			t.Fatal("a refused form left objects behind")
		}
		pieces, again := document.ReadForm(t.Context(), iotest.OneByteReader(bytes.NewReader(body)),
			contentType, small(), bucket)
		if fmt.Sprint(again) != fmt.Sprint(err) || !slices.Equal(pieces.Digests(), whole.Digests()) {
			t.Fatalf("in one piece %v, in many %v", err, again)
		}
		if err == nil {
			compare(t, whole, contentType, body)
		}
		if err := errors.Join(whole.Discard(t.Context()), pieces.Discard(t.Context())); err != nil {
			t.Fatal(err)
		}
	})
}

// compare reads the form a second time, with the standard library's parser.
func compare(t *testing.T, form *document.Form, contentType string, body []byte) {
	t.Helper()
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil || len(body) == 0 {
		return
	}
	values := map[string]string{}
	files := 0
	parser := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for {
		part, err := parser.NextRawPart()
		if err != nil && strings.Contains(err.Error(), "malformed MIME header") {
			return // for a control character, which ReadForm accepts
		}
		if err != nil {
			break // ReadForm accepted the form, so this is its end
		}
		content, err := io.ReadAll(part)
		if err != nil {
			t.Fatalf("accepted a form that breaks off: %v", err)
		}
		if part.FormName() == document.FieldFiles && len(content) > 0 {
			files++
		} else if part.FormName() != document.FieldFiles {
			values[part.FormName()] = string(content)
		}
	}
	for name, value := range form.Values {
		if values[name] != value || !utf8.ValidString(value) || strings.Contains(value, "\x00") {
			t.Fatalf("%s is %q, the standard library reads %q", name, value, values[name])
		}
	}
	if len(form.Files) != files {
		t.Fatalf("%d files, the standard library reads %d", len(form.Files), files)
	}
}
