package webhook

// Query is the statement of a page, for tests that look at its plan.
func (f DeliveryFilter) Query() (string, []any) { return f.query() }
