package views

import "net/url"

// PathDoctor looks into signatures that a partner does not accept.
const PathDoctor = "/console/signature-doctor"

// DoctorPath is the doctor's page about one delivery.
func DoctorPath(delivery string) string {
	return withQuery(PathDoctor, url.Values{"delivery": {delivery}})
}

// DoctorPage asks for a body and its signature, and answers what is wrong.
type DoctorPage struct {
	Frame
	// Delivery and Subscription are ids as typed; one is enough.
	Delivery     string
	Subscription string
	Body         string
	Signature    string
	// Faults are what is wrong with a field, by its name.
	Faults map[string]string
	// Verdict is the answer, nil before there is one.
	Verdict *Notice
}

func (p DoctorPage) field(name, label, hint string) FieldProps {
	return FieldProps{ID: "doctor-" + name, Label: label, Hint: hint, Fault: p.Faults[name]}
}
