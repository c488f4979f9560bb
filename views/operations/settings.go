package operations

import "drawbridge/views/ui"

// ConfigRow is a setting of the process's environment, secrets masked.
type ConfigRow struct {
	Name    string
	Value   string
	From    string
	Meaning string
}

// RetentionForm is how long things are kept, as stored or as typed.
type RetentionForm struct {
	Months, BodyDays, EmailDays, RequestDays string

	Faults map[string]string
}

func (f RetentionForm) faults() []ui.FilterFault {
	return ui.FormFaultsOf(f.Faults,
		"metadata_months", "body_days", "email_body_days", "api_request_days")
}

// retentionField is one number of the form.
type retentionField struct {
	name, label, hint, value string
}

func (f RetentionForm) fields() []retentionField {
	return []retentionField{
		{
			"metadata_months", "Events, deliveries and attempts: months",
			"2 to 120. Whole months go at a time.", f.Months,
		},
		{
			"body_days", "Bodies of events and attempts: days",
			"7 to 3,650. Without its body an event cannot be sent again.", f.BodyDays,
		},
		{"email_body_days", "Texts of e-mails: days", "7 to 3,650.", f.EmailDays},
		{"api_request_days", "Requests of partners: days", "7 to 3,650.", f.RequestDays},
	}
}

// RoleCheck is a role and whether its users must have a second factor.
type RoleCheck struct {
	Role    string
	Checked bool
}

// Settings is the page of the settings.
type Settings struct {
	ui.Frame
	Retention RetentionForm
	Roles     []RoleCheck
	// Provider names the OpenID Connect provider; empty without one.
	Provider string
	Config   []ConfigRow
}

// RetentionPlan is the page that says what new settings would remove.
type RetentionPlan struct {
	ui.Frame
	Form RetentionForm
	// Lines tell what would go, in words.
	Lines []string
}

func configTable(rows []ConfigRow) ui.TableProps[ConfigRow] {
	return ui.TableProps[ConfigRow]{
		Caption: "Settings of this process", Rows: rows,
		RowID: func(r ConfigRow) string { return "config-" + r.Name },
		Columns: []ui.Column[ConfigRow]{
			{Title: "Variable", Class: "wrap", Header: true, Cell: configNameCell},
			{Title: "Value", Class: "wrap", Cell: configValueCell},
			{Title: "From", Class: "col-b w-id wrap", Cell: configFromCell},
		},
	}
}
