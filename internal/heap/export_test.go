package heap

// Percent returns the growth of a heap with that many live bytes.
func Percent(living uint64) int { return percent(living) }
