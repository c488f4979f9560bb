package docs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The collection is in the Postman 2.1 format, which Bruno, Insomnia and
// Hoppscotch import too. It is made from the examples of openapi.yaml.

type collection struct {
	Info     collectionInfo     `json:"info"`
	Auth     collectionAuth     `json:"auth"`
	Variable []collectionPair   `json:"variable"`
	Item     []collectionFolder `json:"item"`
}

type collectionInfo struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Schema      string `json:"schema"`
}

// collectionAuth is "noauth": credentials travel in headers of our own.
type collectionAuth struct {
	Type string `json:"type"`
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
	Request collectionRequest `json:"request"`
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

// makeCollection writes one request per example, in folders by tag.
func (d *document) makeCollection() ([]byte, error) {
	made := collection{
		Info: collectionInfo{
			Name:        d.Info.Title,
			Description: d.Info.Description,
			Schema:      "https://schema.getpostman.com/json/collection/v2.1.0/collection.json",
		},
		Auth: collectionAuth{Type: "noauth"},
		Variable: []collectionPair{
			{Key: "base_url", Value: d.base},
			{Key: "client_id", Value: ""},
			{Key: "client_secret", Value: ""},
			{Key: "merchant_uid", Value: "", Description: "Only for group accounts."},
		},
	}
	for _, tag := range d.Tags {
		folder := collectionFolder{Name: tag.Name, Description: tag.Description}
		for _, op := range d.operations {
			if !slices.Contains(op.Tags, tag.Name) {
				continue
			}
			for _, request := range op.calls(d.base) {
				item, err := request.item()
				if err != nil {
					return nil, err
				}
				folder.Item = append(folder.Item, item)
			}
		}
		made.Item = append(made.Item, folder)
	}
	text, err := json.MarshalIndent(made, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the collection: %w", err)
	}
	return append(text, '\n'), nil
}

func (c call) item() (collectionItem, error) {
	item := collectionItem{Name: c.Summary, Request: collectionRequest{
		Method:      c.Method,
		Description: c.Description,
		URL:         c.collectionURL(),
		Header: []collectionPair{
			{Key: "x-service-client-id", Value: "{{client_id}}"},
			{Key: "x-service-client-secret", Value: "{{client_secret}}"},
			{Key: "x-service-merchant-uid", Value: "{{merchant_uid}}", Disabled: true},
		},
	}}
	if c.example != "" {
		item.Name += ": " + strings.ToLower(c.example[:1]) + c.example[1:]
	}
	request := &item.Request
	if c.takesKey() {
		request.Header = append(request.Header,
			collectionPair{Key: "Idempotency-Key", Value: "{{$guid}}"})
	}
	switch {
	case c.value == nil:
	case c.mediaType == multipartType:
		request.Body = &collectionBody{Mode: "formdata", FormData: formParts(c.value)}
	default:
		body, err := toJSON(c.value)
		if err != nil {
			return item, err
		}
		request.Header = append(request.Header,
			collectionPair{Key: "Content-Type", Value: "application/json"})
		request.Body = &collectionBody{Mode: "raw", Raw: string(body)}
	}
	return item, nil
}

func (c call) collectionURL() collectionURL {
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
			made.Variable = append(made.Variable, pair)
		case "query":
			pair.Disabled = pair.Value == ""
			made.Query = append(made.Query, pair)
		}
	}
	made.Raw = "{{base_url}}" + path
	made.Path = strings.Split(strings.TrimPrefix(path, "/"), "/")
	return made
}

func formParts(value *yaml.Node) []collectionPart {
	parts := []collectionPart{}
	for i := 0; i+1 < len(value.Content); i += 2 {
		name, part := value.Content[i].Value, value.Content[i+1]
		if part.Kind == yaml.SequenceNode {
			parts = append(parts, collectionPart{Key: name, Type: "file", Src: certificateName})
			continue
		}
		parts = append(parts, collectionPart{Key: name, Type: "text", Value: part.Value})
	}
	return parts
}
