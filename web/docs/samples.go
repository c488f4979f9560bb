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

// sample is a program that pages show, by its file below samples/.
type sample struct{ name, lexer, file string }

// consumers follow the feed. `make gates` runs them exactly as shown, and kills them.
var consumers = []sample{
	{"Go", "go", "consumer/go/main.go"},
	{"Python", "python", "consumer/python/consumer.py"},
	{"TypeScript", "typescript", "consumer/typescript/consumer.ts"},
}

// sampleLanguages are the signature checking samples in the order of the page. A test runs
// them exactly as shown. Each file is a complete program: secret and signatures are
// arguments, the body is standard input.
var sampleLanguages = []sample{
	{"Go", "go", "go/main.go"},
	{"Node.js", "javascript", "node/verify.mjs"},
	{"Python", "python", "python/verify.py"},
	{"PHP", "php", "php/verify.php"},
	{"Ruby", "ruby", "ruby/verify.rb"},
	{"Java", "java", "java/Verify.java"},
	{"C#", "c#", "csharp/Verify.cs"},
}

// Vectors returns the test vectors with which partners can test their signature check.
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

// read reads the program of each language.
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

// Snippets returns the programs that check a signature, for the console.
func Snippets() ([]subscriptions.Snippet, error) {
	programs, err := read(sampleLanguages)
	var snippets []subscriptions.Snippet
	for _, program := range programs {
		snippets = append(snippets, subscriptions.Snippet{Language: program.Title, Code: program.Text})
	}
	return snippets, err
}
