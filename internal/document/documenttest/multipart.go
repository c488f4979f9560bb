package documenttest

import (
	"bytes"
	"mime/multipart"
	"net/textproto"
	"strings"
)

// Part is one part of a multipart body. Without a Filename it is a plain value.
type Part struct {
	Name     string
	Filename string
	Content  []byte
}

// Value returns a plain part.
func Value(name, content string) Part { return Part{Name: name, Content: []byte(content)} }

// File returns a file in the repeated part that carries documents.
func File(filename string, content []byte) Part {
	return Part{Name: "files", Filename: filename, Content: content}
}

// Multipart returns the body of a form and its Content-Type.
func Multipart(parts ...Part) (body []byte, contentType string) {
	return MultipartWith("drawbridge-test-boundary", parts...)
}

// MultipartWith is Multipart with a boundary of choice.
func MultipartWith(boundary string, parts ...Part) (body []byte, contentType string) {
	var out bytes.Buffer
	form := multipart.NewWriter(&out)
	must(form.SetBoundary(boundary))
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	for _, part := range parts {
		disposition := `form-data; name="` + quoted.Replace(part.Name) + `"`
		header := textproto.MIMEHeader{}
		if part.Filename != "" {
			disposition += `; filename="` + quoted.Replace(part.Filename) + `"`
			header.Set("Content-Type", "application/octet-stream")
		}
		header.Set("Content-Disposition", disposition)
		content, err := form.CreatePart(header)
		must(err)
		_, err = content.Write(part.Content)
		must(err)
	}
	must(form.Close())
	return out.Bytes(), form.FormDataContentType()
}
