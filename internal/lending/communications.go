package lending

// Source is the interface that created an application.
type Source string

// The sources of applications.
const (
	SourcePartner Source = "partner"
	SourceConsole Source = "console"
)

// Communications says whether the borrower of an application gets e-mails (specification section
// 3.2). It changes only from paused to enabled.
type Communications string

// The states of communications.
const (
	CommunicationsPaused  Communications = "paused"
	CommunicationsEnabled Communications = "enabled"
)

// InitialCommunications returns the state in which an application starts: paused
// until the offer is accepted when a partner created it, else enabled.
func (s Source) InitialCommunications() Communications {
	if s == SourcePartner {
		return CommunicationsPaused
	}
	return CommunicationsEnabled
}
