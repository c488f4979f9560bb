package search

// Query is the statement of a search, for tests that look at its plan.
func Query(text string) (string, []any) { return query(text) }

// PickQuery is the statement of a picker, for tests that look at its plan.
var PickQuery = pickQuery
