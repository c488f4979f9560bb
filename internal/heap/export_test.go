package heap

// Percent is the growth of a heap of so many bytes.
func Percent(living uint64) int { return percent(living) }
