package search

// Query is the statement of a search, for tests that look at its plan.
func Query(text string) (string, []any) { return query(text) }
