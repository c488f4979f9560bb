package emails

import "drawbridge/views/ui"

// MailSettings is the page that says how mail looks and who hears of trouble.
type MailSettings struct {
	ui.Frame
	Form MailSettingsForm
	// SampleURL is a mail as it looks with the settings that are stored.
	SampleURL string
}

// MailSettingsForm is the form as it was stored or typed, with a fault for each
// field that is wrong.
type MailSettingsForm struct {
	LenderName string
	// PrimaryColor and AccentColor are "#rrggbb".
	PrimaryColor string
	AccentColor  string
	ReplyTo      string
	// AlertTo holds one address a line.
	AlertTo string
	Faults  map[string]string
}

// faults lists the wrong fields in the order of the form.
func (f MailSettingsForm) faults() []ui.FilterFault {
	var found []ui.FilterFault
	for _, name := range []string{
		"lender_name", "primary_color", "accent_color", "reply_to", "alert_to",
	} {
		if text := f.Faults[name]; text != "" {
			found = append(found, ui.FilterFault{Href: "#" + name, Text: text})
		}
	}
	return found
}

// field describes a control of the form with its fault.
func (f MailSettingsForm) field(name, label, hint string) ui.FieldProps {
	return ui.FieldProps{ID: name, Label: label, Hint: hint, Fault: f.Faults[name]}
}
