package docs

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	docsview "drawbridge/views/docs"
	"drawbridge/views/subscriptions"
)

//go:embed quickstart.yaml
var quickstartSource []byte

// QuickStart returns the steps with base as the server's address.
func QuickStart(base string) ([]docsview.Step, error) {
	var steps []docsview.Step
	if err := yaml.Unmarshal(quickstartSource, &steps); err != nil {
		return nil, fmt.Errorf("reading quickstart.yaml: %w", err)
	}
	for i := range steps {
		steps[i].Run = strings.ReplaceAll(steps[i].Run, ExampleBaseURL, base)
	}
	return steps, nil
}

// sample is a program of ours that pages show, by its file below samples/.
type sample struct{ name, lexer, file string }

// consumers follow the feed. make gates runs them as they are shown, and kills them.
var consumers = []sample{
	{"Go", "go", "consumer/go/main.go"},
	{"Python", "python", "consumer/python/consumer.py"},
	{"TypeScript", "typescript", "consumer/typescript/consumer.ts"},
}

// sampleLanguages orders the signature checking samples on the page, where they
// are shown as a test runs them. Each file is a whole program: secret and
// signatures are arguments, the body is standard input.
var sampleLanguages = []sample{
	{"Go", "go", "go/main.go"},
	{"Node.js", "javascript", "node/verify.mjs"},
	{"Python", "python", "python/verify.py"},
	{"PHP", "php", "php/verify.php"},
	{"Ruby", "ruby", "ruby/verify.rb"},
	{"Java", "java", "java/Verify.java"},
	{"C#", "c#", "csharp/Verify.cs"},
}

// Vectors returns the signature tests that partners can try their receiver with.
func Vectors() ([]docsview.Vector, error) {
	text, err := content.ReadFile("samples/vectors.json")
	if err != nil {
		return nil, fmt.Errorf("reading the test vectors: %w", err)
	}
	var vectors []docsview.Vector
	if err := json.Unmarshal(text, &vectors); err != nil {
		return nil, fmt.Errorf("reading the test vectors: %w", err)
	}
	return vectors, nil
}

// read reads each language's program.
func read(programs []sample) ([]docsview.Code, error) {
	var shown []docsview.Code
	for _, language := range programs {
		text, err := content.ReadFile("samples/" + language.file)
		if err != nil {
			return nil, fmt.Errorf("reading the %s sample: %w", language.name, err)
		}
		shown = append(shown,
			docsview.Code{Title: language.name, Lang: language.lexer, Text: string(text)})
	}
	return shown, nil
}

// Snippets are the programs that check a signature, for the console.
func Snippets() ([]subscriptions.Snippet, error) {
	programs, err := read(sampleLanguages)
	var snippets []subscriptions.Snippet
	for _, program := range programs {
		snippets = append(snippets, subscriptions.Snippet{Language: program.Title, Code: program.Text})
	}
	return snippets, err
}
