package diagnose

import (
	"slices"
	"strings"

	"drawbridge/internal/webhook/sender"
)

// Curl returns a shell command that repeats a request by hand. headers are the logged
// ones: masked values become placeholders such as <AUTHORIZATION>, to be replaced by
// somebody who knows them.
func Curl(url string, headers []sender.Header, body []byte) string {
	var command strings.Builder
	command.WriteString("curl -i -g -X POST " + quoteShell(url))
	for _, header := range headers {
		// curl sets these itself, and correctly.
		if slices.Contains([]string{"host", "content-length", "accept-encoding"}, header.Name) {
			continue
		}
		placeholder := "<" + strings.ToUpper(header.Name) + ">"
		line := header.Name + ": " + strings.ReplaceAll(header.Value, sender.Masked, placeholder)
		if header.Value == "" {
			line = header.Name + ";" // curl's way to send an empty value
		}
		command.WriteString(" \\\n  -H " + quoteShell(line))
	}
	command.WriteString(" \\\n  --data-raw " + quoteShell(string(body)))
	return command.String()
}

// quoteShell quotes a text as one word for a POSIX shell.
func quoteShell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
