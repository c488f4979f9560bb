package docs

import (
	_ "embed"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	docsview "drawbridge/views/docs"
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
