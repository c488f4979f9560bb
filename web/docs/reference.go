package docs

import (
	"slices"
	"strings"

	docsview "drawbridge/views/docs"
)

// commonErrors can come from every operation and are not repeated for each.
var commonErrors = []string{
	"UNAUTHORIZED", "FORBIDDEN", "METHOD_NOT_ALLOWED", "RATE_LIMITED", "INTERNAL",
	"UNAVAILABLE",
}

// writingErrors can come from every operation that takes a body.
var writingErrors = []string{
	"UNSUPPORTED_MEDIA_TYPE", "PAYLOAD_TOO_LARGE", "IDEMPOTENCY_CONFLICT", "IDEMPOTENCY_MISMATCH",
}

// sections groups the operations by tag.
func (d *document) sections() ([]docsview.Section, error) {
	var sections []docsview.Section
	for _, tag := range d.Tags {
		section := docsview.Section{
			ID: docsview.Slug(tag.Name), Title: tag.Name, Prose: tag.Description,
		}
		for _, op := range d.operations {
			if !slices.Contains(op.Tags, tag.Name) {
				continue
			}
			shown, err := d.operationView(op)
			if err != nil {
				return nil, err
			}
			section.Operations = append(section.Operations, shown)
		}
		sections = append(sections, section)
	}
	return sections, nil
}

func (d *document) operationView(op operation) (docsview.Operation, error) {
	shown := docsview.Operation{
		ID: op.ID, Method: op.Method, Path: op.Path, Summary: op.Summary,
		Sandbox:    slices.Contains(op.Tags, "Sandbox"),
		Prose:      op.Description,
		Parameters: docsview.Group{Title: "Parameters and headers", Fields: op.parameterFields()},
		Errors:     d.errorCodes(op.Errors),
	}
	if op.Body != nil {
		media := op.Body.Content[0]
		shown.Body = docsview.Group{
			Title: "Body, " + media.Name, Fields: media.Value.Schema.fields(""),
		}
	}
	for _, request := range op.calls(d.base) {
		command, err := request.curl()
		if err != nil {
			return shown, err
		}
		shown.Requests = append(shown.Requests,
			docsview.Code{Title: request.example, Lang: "bash", Text: command})
	}
	err := addAnswers(&shown, op)
	return shown, err
}

// addAnswers shows the fields of the successful answer's data, and the examples: all
// successes, and the refusals whose code is one of the operation's own.
func addAnswers(shown *docsview.Operation, op operation) error {
	for _, answer := range op.Responses {
		for _, media := range answer.Value.Content {
			if strings.HasPrefix(answer.Name, "2") {
				result, _ := media.Value.Schema.Properties.get("result")
				data, _ := result.Properties.get("data")
				shown.Answer = docsview.Group{
					Title: "Response " + answer.Name + ", result.data", Fields: data.fields(""),
				}
			}
			for _, sample := range media.Value.Examples {
				var refusal struct {
					Result struct{ Error struct{ Code string } }
				}
				err := sample.Value.Value.Decode(&refusal)
				if name := refusal.Result.Error.Code; err != nil ||
					name != "" && !slices.Contains(op.Errors, name) {
					continue // the same for every operation
				}
				code, err := sample.Value.listing(answer.Name + " " + sample.Value.Summary)
				if err != nil {
					return err
				}
				shown.Answers = append(shown.Answers, code)
			}
		}
	}
	return nil
}

// listing returns the example's value as JSON.
func (e example) listing(title string) (docsview.Code, error) {
	text, err := toJSON(&e.Value)
	return docsview.Code{Title: title, Lang: "json", Text: string(text)}, err
}

func (o operation) parameterFields() []docsview.Field {
	var fields []docsview.Field
	for _, parameter := range o.Parameters {
		fields = append(fields, docsview.Field{
			Name: parameter.Name, Type: parameter.Schema.typeText() + ", " + parameter.In,
			Required: parameter.Required, Text: parameter.Description,
			Values: parameter.Schema.values(),
		})
	}
	return fields
}

// errorCodes returns the entries of the named codes in the given order.
func (d *document) errorCodes(names []string) []docsview.ErrorCode {
	var entries []docsview.ErrorCode
	for _, name := range names {
		for _, entry := range d.Codes {
			if entry.Code == name {
				entries = append(entries, entry)
			}
		}
	}
	return entries
}

// events returns the webhook events for the guide.
func (d *document) events() ([]docsview.Event, error) {
	var events []docsview.Event
	for _, hook := range d.Webhooks {
		op := hook.Value[0].Value
		media := op.Body.Content[0].Value
		event := docsview.Event{
			Kind: hook.Name, Summary: op.Summary, Cause: op.Cause, Tell: op.Tell,
			Prose: op.Description, Fields: media.Schema.fields(""),
		}
		for _, sample := range media.Examples {
			code, err := sample.Value.listing(sample.Value.Summary)
			if err != nil {
				return nil, err
			}
			event.Samples = append(event.Samples, code)
		}
		events = append(events, event)
	}
	return events, nil
}
