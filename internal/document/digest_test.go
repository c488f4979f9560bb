package document_test

import (
	"bytes"
	"encoding/hex"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

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
		return form.Digests()[1]
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

// TestDigestsOfEveryRelease has the digests under which releases stored replies. A change of the
// encoding adds one; the existing ones stay as they are.
func TestDigestsOfEveryRelease(t *testing.T) {
	t.Parallel()
	body, contentType := documenttest.Multipart(
		documenttest.Value("updatedLoanAmount", "9000.00"),
		documenttest.File("b.pdf", []byte("%PDF-1.7\n1 0 obj\n<<>>\nendobj\ntrailer\n<<>>\n%%EOF\n")),
		documenttest.Value("metadata", `{"inspector":"Ada"}`),
		documenttest.Value("note", "unknown"))
	tests := map[string]struct {
		body []byte
		want []string
	}{
		"a form": {body, []string{
			"1a45dadf8ba8389d5070c67d86cd6821e0dffeaeff40f35c5d62eff9772b7369", // 0.1.0
			"033c8b3251da92421bb6db7568cb98abcf5f9993dde74fcf20b09274e8861048",
		}},
		"no body": {nil, []string{
			"1dc3de5b9ba593b4405768641444b6fffda168c1182e678f23dab1de14d0eeae", // 0.1.0
			"d67211309f8695760e7c2fecd1664861960a309f6cadd5cd84e0cb8ff75aace0",
		}},
	}
	for name, test := range tests {
		bucket, _ := folderBucket(t)
		form, err := document.ReadForm(t.Context(), bytes.NewReader(test.body), contentType,
			document.DefaultLimits(), bucket)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, digest := range form.Digests() {
			got = append(got, hex.EncodeToString(digest[:]))
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("digests of %s:\n%s", name, diff)
		}
	}
}

// TestDigestOfRefusedForms reads each refused form with other boundaries and in other pieces: the
// same key with the same content must get the same answer.
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
			return form.Digests()[1]
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
		return form.Digests()[1]
	}
	if digest("Content-Transfer-Encoding: base64\r\n") == digest("") {
		t.Error("a form that is refused for its encoding has the digest of one that is not")
	}
	if digest("Content-Type: application/json\r\n") != digest("") {
		t.Error("a header without effect changes the digest")
	}
}
