// Package applications renders applications with their loans and documents, and the products.
package applications

import "drawbridge/views/ui"

// ApplicationList is the page that lists applications.
type ApplicationList struct {
	ui.Frame
	// Export is the filter as the form of the file sends it.
	Export string
	// Views are filters with a name.
	Views  ui.NamedFilters
	Filter ApplicationFilter
	// Tabs are the statuses to switch between, Active the other filters in force.
	Tabs   []ui.Tab
	Active []ui.ActiveFilter
	// Partners and Merchants are the choices of the filter form.
	Partners  []ui.Option
	Merchants []ui.Option
	Rows      []ui.ApplicationRow
	// Summary counts the filtered set: "1,204 applications".
	Summary string
	// Newest and Older are neighbouring pages, empty where there is none.
	Newest string
	Older  string
}

func (p ApplicationList) filtered() bool { return p.Filter.Status != "" || len(p.Active) > 0 }

// field describes a control of the filter form with its fault.
func (p ApplicationList) field(name, label string) ui.FieldProps {
	return ui.FieldProps{ID: "filter-" + name, Label: label, Fault: p.Filter.Faults[name]}
}

// ApplicationFilter is the filter as the reader typed it, with a fault for each
// value that is wrong.
type ApplicationFilter struct {
	Status   string
	Partner  string
	Merchant string
	Search   string
	Faults   map[string]string
}

// faults lists the wrong values in the order of the form.
func (f ApplicationFilter) faults() []ui.FilterFault {
	var found []ui.FilterFault
	for _, name := range []string{"status", "q", "partner", "merchant", "cursor"} {
		if text := f.Faults[name]; text != "" {
			fault := ui.FilterFault{Text: text}
			if name != "status" && name != "cursor" {
				fault.Href = "#filter-" + name
			}
			found = append(found, fault)
		}
	}
	return found
}
