package deliveries

import "drawbridge/views/ui"

// DoctorPage asks for a body and its signature, and answers what is wrong.
type DoctorPage struct {
	ui.Frame
	// Delivery and Subscription are ids as typed; one is enough.
	Delivery     string
	Subscription string
	Body         string
	Signature    string
	// Faults are what is wrong with a field, by its name.
	Faults map[string]string
	// Verdict is the answer, nil before there is one.
	Verdict *ui.Notice
}

func (p DoctorPage) field(name, label, hint string) ui.FieldProps {
	return ui.FieldProps{ID: "doctor-" + name, Label: label, Hint: hint, Fault: p.Faults[name]}
}
