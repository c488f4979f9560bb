package docs

import (
	"embed"
	"encoding/json"
	"fmt"

	"drawbridge/views/docsview"
	"drawbridge/views/subscriptions"
)

// The signature checking samples, as they are shown and as a test runs them.
//
//go:embed samples
var sampleFiles embed.FS

// sampleLanguages orders the samples on the page. Each file is a whole
// program: secret and signatures are arguments, the body is standard input.
var sampleLanguages = []struct{ name, lexer, file string }{
	{"Go", "go", "go/main.go"},
	{"Node.js", "javascript", "node/verify.mjs"},
	{"Python", "python", "python/verify.py"},
	{"PHP", "php", "php/verify.php"},
	{"Ruby", "ruby", "ruby/verify.rb"},
	{"Java", "java", "java/Verify.java"},
	{"C#", "c#", "csharp/Verify.cs"},
}

// Vector is one published signature test: a receiver must call it genuine, or
// not.
type Vector struct {
	Name   string `json:"name"`
	Secret string `json:"secret"`
	Body   string `json:"body"`
	// Signatures are the values of x-hmac-signature and, where there are two,
	// of x-hmac-signature-previous.
	Signatures []string `json:"signatures"`
	Genuine    bool     `json:"genuine"`
}

// Vectors returns the signature tests that partners can try their receiver with.
func Vectors() ([]Vector, error) {
	text, err := sampleFiles.ReadFile("samples/vectors.json")
	if err != nil {
		return nil, fmt.Errorf("reading the test vectors: %w", err)
	}
	var vectors []Vector
	if err := json.Unmarshal(text, &vectors); err != nil {
		return nil, fmt.Errorf("reading the test vectors: %w", err)
	}
	return vectors, nil
}

// sampleListings reads each language's program.
func sampleListings() ([]docsview.Code, error) {
	var shown []docsview.Code
	for _, language := range sampleLanguages {
		text, err := sampleFiles.ReadFile("samples/" + language.file)
		if err != nil {
			return nil, fmt.Errorf("reading the %s sample: %w", language.name, err)
		}
		shown = append(shown, listing(language.name, language.lexer, string(text)))
	}
	return shown, nil
}

// vectorRows prepares the vectors for the page.
func vectorRows() ([]docsview.Vector, error) {
	vectors, err := Vectors()
	if err != nil {
		return nil, err
	}
	var rows []docsview.Vector
	for _, vector := range vectors {
		row := docsview.Vector{
			Name: vector.Name, Secret: vector.Secret, Body: vector.Body, Verdict: "forged",
		}
		if vector.Genuine {
			row.Verdict = "genuine"
		}
		for i, signature := range vector.Signatures {
			if i > 0 {
				row.Signature += "\n"
			}
			row.Signature += signature
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// Snippets are the programs that check a signature, for the console.
func Snippets() ([]subscriptions.Snippet, error) {
	var snippets []subscriptions.Snippet
	for _, language := range sampleLanguages {
		text, err := sampleFiles.ReadFile("samples/" + language.file)
		if err != nil {
			return nil, fmt.Errorf("reading the %s sample: %w", language.name, err)
		}
		snippets = append(snippets, subscriptions.Snippet{Language: language.name, Code: string(text)})
	}
	return snippets, nil
}
