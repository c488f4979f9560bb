package document_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"drawbridge/internal/document"
	"drawbridge/internal/document/documenttest"
)

func TestDigestDependsOnPartsAlone(t *testing.T) {
	t.Parallel()
	value, file := documenttest.Value, documenttest.File
	pdf := documenttest.PDF(0)
	metadata := value("metadata", "{}")
	second := file("c.pdf", documenttest.PDF(2000))
	parts := []documenttest.Part{metadata, file("a.pdf", pdf), value("x", "1")}
	digest := func(boundary string, parts ...documenttest.Part) [32]byte {
		body, contentType := documenttest.MultipartWith(boundary, parts...)
		bucket, _ := folderBucket(t)
		form, err := document.ReadForm(t.Context(), iotest.HalfReader(bytes.NewReader(body)), contentType,
			document.DefaultLimits(), bucket)
		if err != nil {
			t.Fatal(err)
		}
		return form.Digest
	}
	first := digest("one", parts...)
	if digest("another-boundary", parts...) != first {
		t.Error("the boundary changes the digest")
	}
	for _, order := range [][]int{{0, 2, 1}, {1, 0, 2}, {2, 1, 0}} {
		if digest("one", parts[order[0]], parts[order[1]], parts[order[2]]) != first {
			t.Errorf("the order %v of different names changes the digest", order)
		}
	}
	if digest("one", file("a.pdf", pdf), second) == digest("one", second, file("a.pdf", pdf)) {
		t.Error("the order of files does not change the digest")
	}
	for name, other := range map[string][]documenttest.Part{
		"content":        {value("metadata", "{ }"), file("a.pdf", pdf), value("x", "1")},
		"file content":   {metadata, file("a.pdf", documenttest.PDF(2000)), value("x", "1")},
		"file name":      {metadata, file("b.pdf", pdf), value("x", "1")},
		"unknown part":   {metadata, file("a.pdf", pdf), value("y", "1")},
		"one part less":  {metadata, file("a.pdf", pdf)},
		"one part more":  append(parts[:3:3], value("x", "1")),
		"split of bytes": {value("metadata", ""), value("{}", ""), file("a.pdf", pdf), value("x", "1")},
	} {
		if digest("one", other...) == first {
			t.Errorf("another %s has the same digest", name)
		}
	}
}

// TestDigestOfRefusedForms reads each refused form with other boundaries and in
// other pieces: the same key with the same content must meet the same answer.
func TestDigestOfRefusedForms(t *testing.T) {
	t.Parallel()
	bucket, _ := folderBucket(t)
	seen := map[[32]byte]string{}
	for name, test := range refusedForms() {
		digest := func(boundary string, pieces func(io.Reader) io.Reader) [32]byte {
			body, contentType := documenttest.MultipartWith(boundary, test.parts...)
			form, err := document.ReadForm(t.Context(), pieces(bytes.NewReader(body)), contentType,
				small(), bucket)
			if err == nil {
				t.Fatalf("%s: accepted", name)
			}
			return form.Digest
		}
		whole := digest("one", func(r io.Reader) io.Reader { return r })
		if digest("another-boundary", iotest.OneByteReader) != whole {
			t.Errorf("%s: the digest depends on the boundary or on the pieces", name)
		}
		if other, taken := seen[whole]; taken && !strings.HasPrefix(name, "headers") {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[whole] = name
	}
}

func TestDigestKnowsRefusedEncodings(t *testing.T) {
	t.Parallel()
	digest := func(header string) [32]byte {
		body := "--b\r\nContent-Disposition: form-data; name=\"metadata\"\r\n" + header +
			"\r\n{}\r\n--b--\r\n"
		form, _ := document.ReadForm(t.Context(), strings.NewReader(body),
			"multipart/form-data; boundary=b", document.DefaultLimits(), nil)
		return form.Digest
	}
	if digest("Content-Transfer-Encoding: base64\r\n") == digest("") {
		t.Error("a form that is refused for its encoding has the digest of one that is not")
	}
	if digest("Content-Type: application/json\r\n") != digest("") {
		t.Error("a header without effect changes the digest")
	}
}
