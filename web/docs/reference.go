package docs

import (
	"slices"
	"strings"

	"drawbridge/views/docsview"
)

// commonErrors may come from every operation and are not repeated at each.
var commonErrors = []string{
	"UNAUTHORIZED", "FORBIDDEN", "METHOD_NOT_ALLOWED", "RATE_LIMITED", "INTERNAL",
	"UNAVAILABLE",
}

// writingErrors may come from every operation that takes a body.
var writingErrors = []string{
	"UNSUPPORTED_MEDIA_TYPE", "PAYLOAD_TOO_LARGE", "IDEMPOTENCY_CONFLICT", "IDEMPOTENCY_MISMATCH",
}

// sections groups the operations by tag.
func (d *document) sections() ([]docsview.Section, error) {
	var sections []docsview.Section
	for _, group := range d.Tags {
		section := docsview.Section{
			ID: slug(group.Name), Title: group.Name, Prose: prose(group.Description),
		}
		var failed error
		d.each(func(method, path string, op operation) {
			if !slices.Contains(op.Tags, group.Name) || failed != nil {
				return
			}
			var shown docsview.Operation
			shown, failed = d.operationView(method, path, op)
			section.Operations = append(section.Operations, shown)
		})
		if failed != nil {
			return nil, failed
		}
		sections = append(sections, section)
	}
	return sections, nil
}

func (d *document) operationView(
	method, path string, op operation,
) (docsview.Operation, error) {
	shown := docsview.Operation{
		ID: op.ID, Method: method, Path: path, Summary: op.Summary,
		Sandbox: slices.Contains(op.Tags, "Sandbox"),
		Prose:   prose(op.Description),
		Parameters: docsview.Group{
			Title: "Parameters and headers", Fields: finished(parameterFields(op)),
		},
		Errors: d.errorRows(op.Errors),
	}
	if op.Body != nil {
		media := op.Body.Content[0]
		shown.Body = docsview.Group{
			Title: "Body, " + media.Name, Fields: finished(media.Value.Schema.fields("")),
		}
	}
	for _, request := range op.calls(d.base, method, path) {
		command, err := request.curl()
		if err != nil {
			return shown, err
		}
		title := strings.TrimPrefix(strings.TrimPrefix(request.title, op.Summary), ": ")
		shown.Requests = append(shown.Requests, listing(upperFirst(title), "bash", command))
	}
	err := d.addAnswers(&shown, op)
	return shown, err
}

// addAnswers shows the fields of the successful answer's data and each example.
func (d *document) addAnswers(shown *docsview.Operation, op operation) error {
	for _, answer := range op.Responses {
		for _, media := range answer.Value.Content {
			if strings.HasPrefix(answer.Name, "2") {
				shown.Answer = docsview.Group{
					Title:  "Answer " + answer.Name + ", result.data",
					Fields: finished(dataOf(media.Value.Schema).fields("")),
				}
			}
			for _, sample := range media.Value.Examples {
				if !sample.Value.belongsTo(op) {
					continue // the same at every operation
				}
				text, err := toJSON(&sample.Value.Value)
				if err != nil {
					return err
				}
				title := answer.Name + " " + sample.Value.Summary
				shown.Answers = append(shown.Answers, listing(title, "json", string(text)))
			}
		}
	}
	return nil
}

// belongsTo tells whether an answer is shown with the operation: every success, and
// the refusals among the operation's own errors.
func (e example) belongsTo(op operation) bool {
	var answer struct {
		Result struct {
			Error struct {
				Code string `yaml:"code"`
			} `yaml:"error"`
		} `yaml:"result"`
	}
	if err := e.Value.Decode(&answer); err != nil {
		return false
	}
	code := answer.Result.Error.Code
	return code == "" || slices.Contains(op.Errors, code)
}

// dataOf returns the schema of result.data in an envelope.
func dataOf(envelope schema) schema {
	result, _ := envelope.Properties.get("result")
	data, _ := result.Properties.get("data")
	return data
}

func parameterFields(op operation) []docsview.Field {
	var fields []docsview.Field
	for _, parameter := range op.Parameters {
		fields = append(fields, docsview.Field{
			Name: parameter.Name, Type: parameter.Schema.typeText() + ", " + parameter.In,
			Required: parameter.Required, Text: parameter.Description,
			Values: parameter.Schema.values(),
		})
	}
	return fields
}

// finished turns the descriptions into inline text.
func finished(fields []docsview.Field) []docsview.Field {
	for i := range fields {
		fields[i].Prose = inline(strings.Join(strings.Fields(fields[i].Text), " "))
	}
	return fields
}

func upperFirst(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// errorRows returns the entries of the named codes in the given order.
func (d *document) errorRows(codes []string) []docsview.ErrorRow {
	var rows []docsview.ErrorRow
	for _, code := range codes {
		for _, entry := range d.Codes {
			if entry.Code == code {
				rows = append(rows, docsview.ErrorRow{
					Code: code, Title: entry.Title, Status: entry.Status,
					Cause: inline(entry.Cause), Cure: inline(entry.Cure),
				})
			}
		}
	}
	return rows
}

// allErrors returns every code with the operations that single it out.
func (d *document) allErrors() []docsview.ErrorRow {
	var codes []string
	for _, entry := range d.Codes {
		codes = append(codes, entry.Code)
	}
	rows := d.errorRows(codes)
	for i := range rows {
		d.each(func(_, _ string, op operation) {
			if slices.Contains(op.Errors, rows[i].Code) {
				rows[i].Operations = append(rows[i].Operations, docsview.Link{
					Href: Prefix + "/reference#" + op.ID, Label: op.Summary,
				})
			}
		})
	}
	return rows
}

// events prepares the webhook events for the guide.
func (d *document) events() ([]docsview.Event, error) {
	var events []docsview.Event
	for _, hook := range d.Webhooks {
		op := hook.Value[0].Value
		media := op.Body.Content[0].Value
		event := docsview.Event{
			Kind: hook.Name, Summary: op.Summary, Cause: inline(op.Cause), Tell: inline(op.Tell),
			Prose:      prose(op.Description),
			Fields:     finished(media.Schema.fields("")),
			SchemaHref: Prefix + "/schemas/" + hook.Name + ".json",
		}
		for _, sample := range media.Examples {
			text, err := toJSON(&sample.Value.Value)
			if err != nil {
				return nil, err
			}
			event.Samples = append(event.Samples,
				listing(sample.Value.Summary, "json", string(text)))
		}
		events = append(events, event)
	}
	return events, nil
}

// deliveryHeaders are the headers of a delivery, the same for every event.
func (d *document) deliveryHeaders() docsview.Group {
	op := d.Webhooks[0].Value[0].Value
	fields := parameterFields(op)
	for i := range fields {
		fields[i].Type = strings.TrimSuffix(fields[i].Type, ", header")
	}
	return docsview.Group{Title: "Headers of a delivery", Fields: finished(fields)}
}
