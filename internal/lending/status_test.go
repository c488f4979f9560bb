package lending_test

import (
	"slices"
	"strings"
	"testing"

	"drawbridge/internal/lending"
)

// The matrices below define the outcome for every pair of statuses, with a row per current
// status and a column per requested status: "=" nothing changes, "y" it moves, "." it is
// refused. They are written as a picture so that they share nothing with the tables they check.

func TestApplicationTransitions(t *testing.T) {
	t.Parallel()
	checkMatrix(t, lending.ApplicationStatus.Move, []lending.ApplicationStatus{
		"Pending Review", "Hard Pull Authorization", "Hard Pull", "Pend Clearance",
		"Approved", "Declined", "Closed",
	}, []string{
		"= y . y y y y",
		". = y y y y y",
		". . = y y y y",
		". y y = y y y",
		". . . y = . y",
		". . . . . = .",
		". . . . . . =",
	})
}

func TestDocumentTransitions(t *testing.T) {
	t.Parallel()
	statuses := []lending.DocumentStatus{"DOCUMENT_SENT", "DOCUMENT_SIGNED"}
	checkMatrix(t, lending.DocumentStatus.Move, statuses, []string{
		"= y",
		". =",
	})
	changed, err := lending.DocumentNone.Move(lending.DocumentSent)
	if !changed || err != nil {
		t.Errorf("documents cannot be sent: %v", err)
	}
	_, err = lending.DocumentNone.Move(lending.DocumentSigned)
	wantCode(t, err, lending.CodeInvalidState)
	_, err = lending.DocumentSent.Move(lending.DocumentNone)
	wantCode(t, err, lending.CodeValidation)
}

func TestFundingTransitions(t *testing.T) {
	t.Parallel()
	checkMatrix(t, lending.FundingStatus.Move, []lending.FundingStatus{
		"FUNDING_REQUESTED", "FUNDING_PROCESSING", "FUNDING_SETTLED", "CANCELLED", "RETURNED",
	}, []string{
		"= y . y .",
		". = y y .",
		". . = . y",
		". . . = .",
		". . . . =",
	})
}

func TestTaskTransitions(t *testing.T) {
	t.Parallel()
	checkMatrix(t, lending.TaskStatus.Move, []lending.TaskStatus{
		"Pending", "Completed", "cancelled",
	}, []string{
		"= y y",
		". = .",
		". . =",
	})
}

func TestNextStatusesOfEachKind(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		got  int
		want int
		what string
	}{
		{len(lending.DocumentNone.Next()), 1, "unsent documents"},
		{len(lending.DocumentSigned.Next()), 0, "signed documents"},
		{len(lending.FundingProcessing.Next()), 2, "a disbursement in processing"},
		{len(lending.FundingSettled.Next()), 1, "a settled disbursement"},
		{len(lending.FundingReturned.Next()), 0, "a returned disbursement"},
		{len(lending.TaskPending.Next()), 2, "a pending task"},
		{len(lending.TaskStatus("Lost").Next()), 0, "a task in no known status"},
	} {
		if tc.got != tc.want {
			t.Errorf("%s can go to %d statuses, want %d", tc.what, tc.got, tc.want)
		}
	}
}

func checkMatrix[S ~string](
	t *testing.T, move func(from, to S) (bool, error), statuses []S, rows []string,
) {
	t.Helper()
	for i, row := range rows {
		for j, cell := range strings.Fields(row) {
			from, to := statuses[i], statuses[j]
			changed, err := move(from, to)
			wantErr := lending.Code("")
			if cell == "." {
				wantErr = lending.CodeInvalidState
			}
			if changed != (cell == "y") || lending.ErrorCode(err) != wantErr {
				t.Errorf("%s to %s: changed %v, %v; want %q", from, to, changed, err, cell)
			}
		}
		_, err := move(statuses[i], "Lost")
		wantCode(t, err, lending.CodeValidation)
	}
}

func TestRefusedMovesSayWhatWouldBeRight(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err  func() (bool, error)
		want string
	}{
		{
			func() (bool, error) { return lending.StatusApproved.Move(lending.StatusHardPull) },
			"an application in status Approved cannot become Hard Pull; " +
				"the next status must be one of: Pend Clearance, Closed",
		},
		{
			func() (bool, error) { return lending.StatusClosed.Move(lending.StatusApproved) },
			"an application in status Closed cannot become Approved: Closed is final",
		},
		{
			func() (bool, error) { return lending.DocumentNone.Move(lending.DocumentSigned) },
			"loan documents not sent yet cannot become DOCUMENT_SIGNED; " +
				"the next status must be one of: DOCUMENT_SENT",
		},
		{
			func() (bool, error) { return lending.TaskPending.Move("Done") },
			`"status" must be one of: Pending, Completed, cancelled`,
		},
	} {
		if _, err := tc.err(); err == nil || err.Error() != tc.want {
			t.Errorf("message %q, want %q", err, tc.want)
		}
	}
}

func TestParseStatuses(t *testing.T) {
	t.Parallel()
	for _, status := range lending.AllApplicationStatuses() {
		if got, err := lending.ParseApplicationStatus(string(status)); got != status || err != nil {
			t.Errorf("%q is read as %q, %v", status, got, err)
		}
	}
	for _, status := range lending.AllFundingStatuses() {
		if got, err := lending.ParseFundingStatus(string(status)); got != status || err != nil {
			t.Errorf("%q is read as %q, %v", status, got, err)
		}
	}
	for _, status := range lending.AllTaskStatuses() {
		if got, err := lending.ParseTaskStatus(string(status)); got != status || err != nil {
			t.Errorf("%q is read as %q, %v", status, got, err)
		}
	}
	for _, wrong := range []string{"", "approved", "APPROVED", "Approved ", "Cancelled", "\x00"} {
		_, applicationErr := lending.ParseApplicationStatus(wrong)
		_, documentErr := lending.ParseDocumentStatus(wrong)
		_, fundingErr := lending.ParseFundingStatus(wrong)
		_, taskErr := lending.ParseTaskStatus(wrong)
		for _, err := range []error{applicationErr, documentErr, fundingErr, taskErr} {
			wantCode(t, err, lending.CodeValidation)
			if fields := wrongFields(err); !slices.Equal(fields, []string{"status"}) {
				t.Errorf("%q: the error names %v, want status", wrong, fields)
			}
		}
	}
}

func TestFinalStatusesAreThoseWithoutSuccessors(t *testing.T) {
	t.Parallel()
	var final, stipulating []lending.ApplicationStatus
	for _, status := range lending.AllApplicationStatuses() {
		if status.IsFinal() {
			final = append(final, status)
		}
		if status.NeedsStipulation() {
			stipulating = append(stipulating, status)
		}
	}
	if !slices.Equal(final, []lending.ApplicationStatus{"Declined", "Closed"}) {
		t.Errorf("final statuses are %q", final)
	}
	want := []lending.ApplicationStatus{"Hard Pull Authorization", "Pend Clearance"}
	if !slices.Equal(stipulating, want) {
		t.Errorf("statuses with a stipulation are %q", stipulating)
	}
}

func TestNextCannotChangeTheTable(t *testing.T) {
	t.Parallel()
	lending.StatusApproved.Next()[0] = lending.StatusDeclined
	if _, err := lending.StatusApproved.Move(lending.StatusDeclined); err == nil {
		t.Error("a caller changed who may follow Approved")
	}
}

func TestCommunicationsStartPausedForPartnersOnly(t *testing.T) {
	t.Parallel()
	if got := lending.SourcePartner.InitialCommunications(); got != lending.CommunicationsPaused {
		t.Errorf("partner applications start %s", got)
	}
	if got := lending.SourceConsole.InitialCommunications(); got != lending.CommunicationsEnabled {
		t.Errorf("console applications start %s", got)
	}
}
