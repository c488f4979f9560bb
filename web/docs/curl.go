package docs

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// multipartType is the media type of the two operations that take files.
const multipartType = "multipart/form-data"

// certificateName is the name of the attached file in examples; its content is a PDF.
const certificateName = "certificate.pdf"

// call is one example request of an operation.
type call struct {
	operation

	base string
	// example is the summary of the example, empty if the operation has only one; key is the
	// name of the example.
	example, key string
	// mediaType and value describe the body; value is nil if there is none.
	mediaType string
	value     *yaml.Node
}

// calls lists an operation's examples, or one call without a body.
func (o operation) calls(base string) []call {
	if o.Body == nil {
		return []call{{operation: o, base: base}}
	}
	var list []call
	for _, media := range o.Body.Content {
		for _, sample := range media.Value.Examples {
			one := call{
				operation: o, base: base, mediaType: media.Name, key: sample.Name,
				value: &sample.Value.Value,
			}
			if len(media.Value.Examples) > 1 {
				one.example = sample.Value.Summary
			}
			list = append(list, one)
		}
	}
	return list
}

// curl returns the call as a command that can be pasted once CLIENT_ID and CLIENT_SECRET
// are set in the shell.
func (c call) curl() (string, error) {
	verb := "curl "
	if c.Method != http.MethodGet {
		verb += "-X " + c.Method + " "
	}
	lines := []string{
		verb + quoteShell(c.url()),
		`-H "x-service-client-id: $CLIENT_ID"`,
		`-H "x-service-client-secret: $CLIENT_SECRET"`,
	}
	if c.takesKey() {
		// The key names the intention, as real ones should, so that running the command again
		// repeats the same request.
		key := strings.TrimSuffix("example-"+c.ID+"-"+c.key, "-")
		lines = append(lines, "-H "+quoteShell("Idempotency-Key: "+key))
	}
	switch {
	case c.value == nil:
	case c.mediaType == multipartType:
		// In an example a file is given by its content; the command names a file instead, which
		// is what a reader has.
		for name, part := range pairs(c.value) {
			if part.Kind != yaml.SequenceNode {
				lines = append(lines, "-F "+quoteShell(name+"="+part.Value))
			}
			for range part.Content {
				lines = append(lines, "-F "+name+"=@"+certificateName)
			}
		}
	default:
		body, err := jsonBody(c.value)
		if err != nil {
			return "", err
		}
		lines = append(lines, "-H 'Content-Type: application/json'", "-d "+quoteShell(body))
	}
	return strings.Join(lines, " \\\n  "), nil
}

// url returns the address with the example values in the path and the query.
func (c call) url() string {
	path, query := c.Path, url.Values{}
	for _, parameter := range c.Parameters {
		switch parameter.In {
		case "path":
			value := url.PathEscape(parameter.Example.Value)
			path = strings.ReplaceAll(path, "{"+parameter.Name+"}", value)
		case "query":
			if parameter.Example.Value != "" {
				query.Set(parameter.Name, parameter.Example.Value)
			}
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return c.base + path
}

// takesKey reports whether the operation reads an Idempotency-Key.
func (o operation) takesKey() bool {
	return slices.ContainsFunc(o.Parameters, func(p parameter) bool {
		return p.Name == "Idempotency-Key"
	})
}

// jsonBody encodes a value as JSON, on one line if it is short.
func jsonBody(value *yaml.Node) (string, error) {
	if compact, err := compactJSON(value); err != nil || len(compact) < 70 {
		return compact, err
	}
	text, err := toJSON(value)
	return string(text), err
}

// quoteShell quotes a word if a shell needs that.
func quoteShell(word string) string {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/:.=_-@%+,"
	if strings.Trim(word, safe) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
