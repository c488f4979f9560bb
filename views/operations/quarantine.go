package operations

import "time"

// Quarantine reports that a restored database sends nothing until somebody decides.
type Quarantine struct {
	// Since is when it began, the zero time if there is none.
	Since  time.Time
	Reason string
	// Deliveries and Mails date from before the restore, and may have been sent already.
	Deliveries, Mails int
}

// releaseCommands are the two ways to end a quarantine.
var releaseCommands = []string{
	`drawbridge restore release --deliveries cancel --mails cancel --reason "sent before the outage"`,
	`drawbridge restore release --deliveries send --mails send --reason "never left"`,
}
