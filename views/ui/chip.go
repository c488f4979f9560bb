package ui

import (
	"net/http"
	"strconv"

	"drawbridge/internal/lending"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
)

// Tone is the colour of a state; it never stands alone.
type Tone string

// The tones, each with a text, a wash and a solid colour in the style sheet.
const (
	Good Tone = "good"
	Warn Tone = "warn"
	Bad  Tone = "bad"
	Calm Tone = "calm"
	Odd  Tone = "odd"
	Mute Tone = "mute"
)

// Icon returns the mark that goes with a tone where nothing better is known.
func (t Tone) Icon() string {
	switch t {
	case Good:
		return "circle-check"
	case Warn:
		return "triangle-alert"
	case Bad:
		return "circle-alert"
	case Odd:
		return "circle-help"
	case Calm, Mute:
	}
	return "info"
}

// ChipProps is a state: icon, word and colour.
type ChipProps struct {
	Icon string
	Word string
	Tone Tone
}

// DeliveryChip describes a delivery's state. A state it does not know is shown
// as it is written.
func DeliveryChip[S ~string](state S) ChipProps {
	switch delivery.State(state) {
	case delivery.StatePending:
		return ChipProps{"clock", "Pending", Calm}
	case delivery.StateDelivered:
		return ChipProps{"circle-check", "Delivered", Good}
	case delivery.StateRetrying:
		return ChipProps{"refresh-cw", "Retrying", Warn}
	case delivery.StateFailed:
		return ChipProps{"circle-x", "Failed", Bad}
	case delivery.StateCancelled:
		return ChipProps{"ban", "Cancelled", Mute}
	case madeGood:
		return ChipProps{"circle-check", "Made good", Mute}
	}
	return ChipProps{"circle-help", string(state), Mute}
}

// WaitingDeliveries is what the list of deliveries takes for a state: those that an attempt is
// to come of.
const WaitingDeliveries = "waiting"

// madeGood is what is shown in place of a failure that is none any more.
const madeGood = "made_good"

// DeliveryChipOf is DeliveryChip that tells when a failure is none any more.
func DeliveryChipOf(d delivery.Delivery) ChipProps {
	if d.MadeGoodBy != nil {
		return DeliveryChip(madeGood)
	}
	return DeliveryChip(d.State)
}

// StatusWord is the status that an event tells as people say it: codes of the
// API become words, the rest are words already.
func StatusWord(status string) string {
	switch status {
	case string(lending.FundingRequested), string(lending.FundingProcessing),
		string(lending.FundingSettled), string(lending.FundingCancelled),
		string(lending.FundingReturned):
		return FundingChip(status).Word
	case "FUNDING_CANCELLED":
		return FundingChip(string(lending.FundingCancelled)).Word
	case "FUNDING_RETURNED":
		return FundingChip(string(lending.FundingReturned)).Word
	case string(lending.DocumentSent):
		return "Sent"
	case string(lending.DocumentSigned):
		return "Signed"
	case string(lending.TaskCancelled):
		return TaskChip(status).Word
	}
	return status
}

// SubscriptionChip describes a subscription's state.
func SubscriptionChip(state subscription.State) ChipProps {
	switch state {
	case subscription.StateActive:
		return ChipProps{"circle-check", "Active", Good}
	case subscription.StateFailing:
		return ChipProps{"triangle-alert", "Failing", Bad}
	case subscription.StatePaused:
		return ChipProps{"pause", "Paused", Mute}
	case subscription.StateDeleted:
		return ChipProps{"trash-2", "Deleted", Mute}
	}
	return ChipProps{"circle-help", string(state), Mute}
}

// FundingChip describes where the money of a draw stands.
func FundingChip(status string) ChipProps {
	switch lending.FundingStatus(status) {
	case lending.FundingRequested:
		return ChipProps{"clock", "Requested", Calm}
	case lending.FundingProcessing:
		return ChipProps{"loader", "Processing", Calm}
	case lending.FundingSettled:
		return ChipProps{"circle-check", "Settled", Good}
	case lending.FundingCancelled:
		return ChipProps{"ban", "Cancelled", Mute}
	case lending.FundingReturned:
		return ChipProps{"rotate-ccw", "Returned", Bad}
	}
	return ChipProps{"circle-help", status, Mute}
}

// TaskChip describes where a task stands.
func TaskChip(status string) ChipProps {
	switch lending.TaskStatus(status) {
	case lending.TaskPending:
		return ChipProps{"clock", "Pending", Warn}
	case lending.TaskCompleted:
		return ChipProps{"circle-check", "Completed", Good}
	case lending.TaskCancelled:
		return ChipProps{"ban", "Cancelled", Mute}
	}
	return ChipProps{"circle-help", status, Mute}
}

// ApplicationChip describes an application's status.
func ApplicationChip(status string) ChipProps {
	switch lending.ApplicationStatus(status) {
	case lending.StatusPendingReview:
		return ChipProps{"clock", status, Calm}
	case lending.StatusHardPullAuthorization, lending.StatusPendClearance:
		return ChipProps{"triangle-alert", status, Warn}
	case lending.StatusHardPull:
		return ChipProps{"loader", status, Calm}
	case lending.StatusApproved:
		return ChipProps{"circle-check", status, Good}
	case lending.StatusDeclined:
		return ChipProps{"circle-x", status, Bad}
	case lending.StatusClosed:
		return ChipProps{"lock", status, Mute}
	}
	return ChipProps{"circle-help", status, Mute}
}

// AnswerChip describes the HTTP status of an answer of ours.
func AnswerChip(status int) ChipProps {
	chip := ChipProps{"circle-check", strconv.Itoa(status), Good}
	switch {
	case status >= http.StatusInternalServerError:
		chip.Icon, chip.Tone = "circle-x", Bad
	case status == http.StatusTooManyRequests:
		chip.Icon, chip.Tone = "clock", Warn
	case status >= http.StatusBadRequest:
		chip.Icon, chip.Tone = "triangle-alert", Warn
	}
	return chip
}
