package lending

import (
	"slices"
	"strings"
)

// ApplicationStatus is the status of an application (specification section 3.1).
type ApplicationStatus string

// The statuses of an application.
const (
	StatusPendingReview         ApplicationStatus = "Pending Review"
	StatusHardPullAuthorization ApplicationStatus = "Hard Pull Authorization"
	StatusHardPull              ApplicationStatus = "Hard Pull"
	StatusPendClearance         ApplicationStatus = "Pend Clearance"
	StatusApproved              ApplicationStatus = "Approved"
	StatusDeclined              ApplicationStatus = "Declined"
	StatusClosed                ApplicationStatus = "Closed"
)

// DocumentStatus is the status of an application's loan documents. The empty status means that
// none were sent.
type DocumentStatus string

// The statuses of loan documents.
const (
	DocumentNone   DocumentStatus = ""
	DocumentSent   DocumentStatus = "DOCUMENT_SENT"
	DocumentSigned DocumentStatus = "DOCUMENT_SIGNED"
)

// FundingStatus is the status of the money of a disbursement.
type FundingStatus string

// The statuses of a disbursement.
const (
	FundingRequested  FundingStatus = "FUNDING_REQUESTED"
	FundingProcessing FundingStatus = "FUNDING_PROCESSING"
	FundingSettled    FundingStatus = "FUNDING_SETTLED"
	FundingCancelled  FundingStatus = "CANCELLED"
	FundingReturned   FundingStatus = "RETURNED"
)

// TaskStatus is the status of a task. The spelling is the specification's.
type TaskStatus string

// The statuses of a task.
const (
	TaskPending   TaskStatus = "Pending"
	TaskCompleted TaskStatus = "Completed"
	TaskCancelled TaskStatus = "cancelled"
)

// transition is one row of a table: the statuses that may follow one.
type transition[S ~string] struct {
	from S
	to   []S
}

// The four tables define every permitted transition. A status without successors is final.
var (
	applicationTable = []transition[ApplicationStatus]{
		{StatusPendingReview, []ApplicationStatus{
			StatusHardPullAuthorization,
			StatusPendClearance, StatusApproved, StatusDeclined, StatusClosed,
		}},
		{StatusHardPullAuthorization, []ApplicationStatus{
			StatusHardPull,
			StatusPendClearance, StatusApproved, StatusDeclined, StatusClosed,
		}},
		{StatusHardPull, []ApplicationStatus{
			StatusPendClearance, StatusApproved, StatusDeclined, StatusClosed,
		}},
		{StatusPendClearance, []ApplicationStatus{
			StatusHardPullAuthorization,
			StatusHardPull, StatusApproved, StatusDeclined, StatusClosed,
		}},
		{StatusApproved, []ApplicationStatus{StatusPendClearance, StatusClosed}},
		{StatusDeclined, nil},
		{StatusClosed, nil},
	}
	documentTable = []transition[DocumentStatus]{
		{DocumentNone, []DocumentStatus{DocumentSent}},
		{DocumentSent, []DocumentStatus{DocumentSigned}},
		{DocumentSigned, nil},
	}
	fundingTable = []transition[FundingStatus]{
		{FundingRequested, []FundingStatus{FundingProcessing, FundingCancelled}},
		{FundingProcessing, []FundingStatus{FundingSettled, FundingCancelled}},
		{FundingSettled, []FundingStatus{FundingReturned}},
		{FundingCancelled, nil},
		{FundingReturned, nil},
	}
	taskTable = []transition[TaskStatus]{
		{TaskPending, []TaskStatus{TaskCompleted, TaskCancelled}},
		{TaskCompleted, nil},
		{TaskCancelled, nil},
	}
)

// Move reports whether moving to another status changes anything: moving to the same status does
// not. Errors: VALIDATION_ERROR for a status that does not exist, INVALID_STATE for one that may
// not follow.
func (s ApplicationStatus) Move(to ApplicationStatus) (changed bool, err error) {
	return move(applicationTable, "an application", s, to)
}

// Next lists the statuses that may follow, nil for a final one.
func (s ApplicationStatus) Next() []ApplicationStatus { return next(applicationTable, s) }

// IsFinal reports whether nothing may follow.
func (s ApplicationStatus) IsFinal() bool { return len(s.Next()) == 0 }

// NeedsStipulation reports whether entering the status requires something of the borrower, so
// that a stipulation e-mail is due.
func (s ApplicationStatus) NeedsStipulation() bool {
	return s == StatusHardPullAuthorization || s == StatusPendClearance
}

// Move works like ApplicationStatus.Move.
func (s DocumentStatus) Move(to DocumentStatus) (changed bool, err error) {
	return move(documentTable, "loan documents", s, to)
}

// Next lists the statuses that may follow, nil for a final one.
func (s DocumentStatus) Next() []DocumentStatus { return next(documentTable, s) }

// Move works like ApplicationStatus.Move. No step of funding may be skipped.
func (s FundingStatus) Move(to FundingStatus) (changed bool, err error) {
	return move(fundingTable, "a disbursement", s, to)
}

// Next lists the statuses that may follow, nil for a final one.
func (s FundingStatus) Next() []FundingStatus { return next(fundingTable, s) }

// InForce reports whether the disbursement takes balance and stage of its loan: it
// is neither cancelled nor returned.
func (s FundingStatus) InForce() bool { return s != FundingCancelled && s != FundingReturned }

// IsPending reports whether the money is still under way to the merchant.
func (s FundingStatus) IsPending() bool { return s == FundingRequested || s == FundingProcessing }

// Move works like ApplicationStatus.Move.
func (s TaskStatus) Move(to TaskStatus) (changed bool, err error) {
	return move(taskTable, "a task", s, to)
}

// Next lists the statuses that may follow, nil for a final one.
func (s TaskStatus) Next() []TaskStatus { return next(taskTable, s) }

// AllApplicationStatuses lists every status once.
func AllApplicationStatuses() []ApplicationStatus { return statuses(applicationTable) }

// AllFundingStatuses lists every status once.
func AllFundingStatuses() []FundingStatus { return statuses(fundingTable) }

// AllTaskStatuses lists every status once.
func AllTaskStatuses() []TaskStatus { return statuses(taskTable) }

// ParseApplicationStatus reads a status as a partner writes it. Error:
// VALIDATION_ERROR for the field "status", naming the statuses that exist.
func ParseApplicationStatus(text string) (ApplicationStatus, error) {
	return parseStatus(applicationTable, text)
}

// ParseDocumentStatus works like ParseApplicationStatus.
func ParseDocumentStatus(text string) (DocumentStatus, error) {
	return parseStatus(documentTable, text)
}

// ParseFundingStatus works like ParseApplicationStatus.
func ParseFundingStatus(text string) (FundingStatus, error) {
	return parseStatus(fundingTable, text)
}

// ParseFundingMove works like ParseFundingStatus, but accepts only statuses that a disbursement
// can be moved to: only a draw makes one requested.
func ParseFundingMove(text string) (FundingStatus, error) {
	moves := slices.DeleteFunc(slices.Clone(fundingTable), func(t transition[FundingStatus]) bool {
		return t.from == FundingRequested
	})
	return parseStatus(moves, text)
}

// ParseTaskStatus works like ParseApplicationStatus.
func ParseTaskStatus(text string) (TaskStatus, error) { return parseStatus(taskTable, text) }

func move[S ~string](table []transition[S], subject string, from, to S) (bool, error) {
	if _, err := parseStatus(table, string(to)); err != nil {
		return false, err
	}
	if from == to {
		return false, nil
	}
	allowed := next(table, from)
	if slices.Contains(allowed, to) {
		return true, nil
	}
	origin := "in status " + string(from)
	if from == "" {
		origin = "not sent yet"
	}
	if len(allowed) == 0 {
		return false, NewError(CodeInvalidState, "%s %s cannot become %s: %s is final",
			subject, origin, string(to), string(from))
	}
	return false, NewError(CodeInvalidState, "%s %s cannot become %s; the next status must be one "+
		"of: %s", subject, origin, string(to), JoinNames(allowed))
}

func next[S ~string](table []transition[S], from S) []S {
	for _, row := range table {
		if row.from == from {
			return slices.Clone(row.to)
		}
	}
	return nil
}

func statuses[S ~string](table []transition[S]) []S {
	all := make([]S, 0, len(table))
	for _, row := range table {
		// The empty status means that nothing has happened yet; no caller may request it.
		if row.from != "" {
			all = append(all, row.from)
		}
	}
	return all
}

func parseStatus[S ~string](table []transition[S], text string) (S, error) {
	all := statuses(table)
	if slices.Contains(all, S(text)) {
		return S(text), nil
	}
	return "", Invalid("status", "%q must be one of: %s", "status", JoinNames(all))
}

// JoinNames lists names for people, separated by commas.
func JoinNames[S ~string](all []S) string {
	texts := make([]string, len(all))
	for i, status := range all {
		texts[i] = string(status)
	}
	return strings.Join(texts, ", ")
}
