package docs

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed collection.yaml
var collectionSource []byte

// The collection is in the Postman 2.1 format, which Bruno, Insomnia and Hoppscotch can
// import too. collection.yaml lists the requests in order; their values come from the
// examples of openapi.yaml. The collection runs from top to bottom: each request stores
// what later ones need in variables.

type collection struct {
	Info struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Schema      string `json:"schema"`
	} `json:"info"`
	// Auth is of the type "noauth", because our credentials are sent in our own headers.
	Auth     map[string]string  `json:"auth"`
	Variable []collectionPair   `json:"variable"`
	Event    []collectionEvent  `json:"event"`
	Item     []collectionFolder `json:"item"`
}

type collectionPair struct {
	Key         string `json:"key"`
	Value       string `json:"value"`
	Description string `json:"description,omitempty"`
	Disabled    bool   `json:"disabled,omitempty"`
}

type collectionFolder struct {
	Name        string           `json:"name"`
	Description string           `json:"description"`
	Item        []collectionItem `json:"item"`
}

type collectionItem struct {
	Name    string            `json:"name"`
	Event   []collectionEvent `json:"event"`
	Request collectionRequest `json:"request"`
}

// collectionEvent is a script: "prerequest" runs before a request, "test" after it.
type collectionEvent struct {
	Listen string `json:"listen"`
	Script struct {
		Type string   `json:"type"`
		Exec []string `json:"exec"`
	} `json:"script"`
}

func script(listen string, lines ...string) collectionEvent {
	made := collectionEvent{Listen: listen}
	made.Script.Type, made.Script.Exec = "text/javascript", lines
	return made
}

type collectionRequest struct {
	Method      string           `json:"method"`
	Description string           `json:"description"`
	Header      []collectionPair `json:"header"`
	URL         collectionURL    `json:"url"`
	Body        *collectionBody  `json:"body,omitempty"`
}

type collectionURL struct {
	Raw      string           `json:"raw"`
	Host     []string         `json:"host"`
	Path     []string         `json:"path"`
	Query    []collectionPair `json:"query,omitempty"`
	Variable []collectionPair `json:"variable,omitempty"`
}

type collectionBody struct {
	Mode     string           `json:"mode"`
	Raw      string           `json:"raw,omitempty"`
	FormData []collectionPart `json:"formdata,omitempty"`
}

type collectionPart struct {
	Key   string `json:"key"`
	Type  string `json:"type"`
	Value string `json:"value,omitempty"`
	// Src is the path of a file; the user picks one.
	Src string `json:"src,omitempty"`
}

// walk is the content of collection.yaml.
type walk struct {
	Variables map[string]string
	Folders   []struct {
		Name, Description string
		Steps             []step
	}
}

// step is one request of the collection.
type step struct {
	Operation string
	// Example is the key of the example, empty if there is at most one.
	Example string
	// Needs is the variable without which the step is skipped, empty for none.
	Needs string
	Query map[string]string
	Save  ordered[string]
}

// makeCollection generates the collection.
func (d *document) makeCollection() ([]byte, error) {
	var way walk
	if err := yaml.Unmarshal(collectionSource, &way); err != nil {
		return nil, fmt.Errorf("reading collection.yaml: %w", err)
	}
	made := collection{
		Auth: map[string]string{"type": "noauth"},
		Variable: []collectionPair{
			{Key: "base_url", Value: d.base},
			{Key: "client_id"},
			{Key: "client_secret"},
			{Key: "merchant_uid", Description: "Only for group accounts."},
		},
		Event: []collectionEvent{script("prerequest",
			`const yesterday = new Date(Date.now() - 24 * 3600 * 1000).toISOString();`,
			`pm.collectionVariables.set("yesterday", yesterday);`)},
	}
	made.Info.Name, made.Info.Description = d.Info.Title, d.Info.Description
	made.Info.Schema = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
	for _, part := range way.Folders {
		folder := collectionFolder{Name: part.Name, Description: part.Description}
		for _, step := range part.Steps {
			item, err := d.item(step, way.Variables)
			if err != nil {
				return nil, fmt.Errorf("adding %s to the collection: %w", step.Operation, err)
			}
			folder.Item = append(folder.Item, item)
		}
		made.Item = append(made.Item, folder)
	}
	text, err := json.MarshalIndent(made, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the collection: %w", err)
	}
	return append(text, '\n'), nil
}

// call returns the example that a step sends.
func (d *document) call(step step) (call, error) {
	for _, op := range d.operations {
		if op.ID != step.Operation {
			continue
		}
		for _, one := range op.calls(d.base) {
			if step.Example == "" || one.key == step.Example {
				return one, nil
			}
		}
	}
	return call{}, fmt.Errorf("openapi.yaml has no example %q of it", step.Example)
}

func (d *document) item(step step, variables map[string]string) (collectionItem, error) {
	call, err := d.call(step)
	if err != nil {
		return collectionItem{}, err
	}
	var status string
	for _, answer := range call.Responses {
		if strings.HasPrefix(answer.Name, "2") {
			status = answer.Name
			break
		}
	}
	// Check the answer, and store what later requests need.
	after := []string{fmt.Sprintf(
		`pm.test("answers %s", () => pm.response.to.have.status(%s));`, status, status)}
	if len(step.Save) > 0 {
		after = append(after, `const got = pm.response.json().result.data;`)
	}
	for _, variable := range step.Save {
		after = append(after, fmt.Sprintf(`pm.collectionVariables.set(%q, %s);`,
			variable.Name, variable.Value))
	}
	item := collectionItem{
		Name: call.Summary, Event: []collectionEvent{script("test", after...)},
		Request: collectionRequest{
			Method:      call.Method,
			Description: call.Description,
			URL:         call.collectionURL(step.Query, variables),
			Header: []collectionPair{
				{Key: "x-service-client-id", Value: "{{client_id}}"},
				{Key: "x-service-client-secret", Value: "{{client_secret}}"},
				{Key: "x-service-merchant-uid", Value: "{{merchant_uid}}", Disabled: true},
			},
		},
	}
	if step.Needs != "" {
		item.Event = append(item.Event, script("prerequest", fmt.Sprintf(
			`if (!pm.collectionVariables.get(%q)) pm.execution.skipRequest();`, step.Needs)))
	}
	if call.example != "" {
		item.Name += ": " + strings.ToLower(call.example[:1]) + call.example[1:]
	}
	return item, item.Request.fill(call, variables)
}

// fill adds the Idempotency-Key and the body.
func (r *collectionRequest) fill(call call, variables map[string]string) error {
	if call.takesKey() {
		r.Header = append(r.Header, collectionPair{Key: "Idempotency-Key", Value: "{{$guid}}"})
	}
	switch {
	case call.value == nil:
	case call.mediaType == multipartType:
		r.Body = &collectionBody{Mode: "formdata"}
		for name, part := range pairs(call.value) {
			field := collectionPart{Key: name, Type: "text", Value: part.Value}
			if part.Kind == yaml.SequenceNode {
				field = collectionPart{Key: name, Type: "file", Src: certificateName}
			}
			r.Body.FormData = append(r.Body.FormData, field)
		}
	default:
		value, err := resolve(call.value, call.value) // a copy
		if err != nil {
			return err
		}
		for field := range pairs(value) {
			if variable := variables[field]; variable != "" {
				setChild(value, field, text("{{"+variable+"}}"))
			}
		}
		body, err := toJSON(value)
		if err != nil {
			return err
		}
		r.Header = append(r.Header, collectionPair{Key: "Content-Type", Value: "application/json"})
		r.Body = &collectionBody{Mode: "raw", Raw: string(body)}
	}
	return nil
}

// collectionURL returns the address with variables in the path. The step's query parameters
// are enabled, the others are listed but disabled.
func (c call) collectionURL(query, variables map[string]string) collectionURL {
	made := collectionURL{Host: []string{"{{base_url}}"}}
	path := c.Path
	for _, parameter := range c.Parameters {
		pair := collectionPair{
			Key: parameter.Name, Value: parameter.Example.Value,
			Description: parameter.Description,
		}
		switch parameter.In {
		case "path":
			path = strings.ReplaceAll(path, "{"+parameter.Name+"}", ":"+parameter.Name)
			pair.Value = "{{" + variables[parameter.Name] + "}}"
			made.Variable = append(made.Variable, pair)
		case "query":
			if value := query[parameter.Name]; value != "" {
				pair.Value = value
			} else {
				pair.Disabled = true
			}
			made.Query = append(made.Query, pair)
		}
	}
	made.Raw = "{{base_url}}" + path
	made.Path = strings.Split(strings.TrimPrefix(path, "/"), "/")
	return made
}
