package ui

import (
	"cmp"
	"net/http"
	"strconv"

	"drawbridge/internal/lending"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
)

// Tone is the colour of a state; it is never the only sign of the state.
type Tone string

// The tones. Each has a text, a wash and a solid colour in the style sheet.
const (
	Good Tone = "good"
	Warn Tone = "warn"
	Bad  Tone = "bad"
	Calm Tone = "calm"
	Odd  Tone = "odd"
	Mute Tone = "mute"
)

var toneIcons = map[Tone]string{
	Good: "circle-check", Warn: "triangle-alert", Bad: "circle-alert", Odd: "circle-help",
	Calm: "info", Mute: "info",
}

// Icon returns the default icon of a tone.
func (t Tone) Icon() string { return cmp.Or(toneIcons[t], "info") }

// ChipProps is a state: icon, word and colour.
type ChipProps struct {
	Icon string
	Word string
	Tone Tone
}

// wordOf returns the word of a value, or the value itself if it has none.
func wordOf[S ~string](words map[S]string, value S) string {
	return cmp.Or(words[value], string(value))
}

// KnownChip returns the chip of a state; an unknown state is shown as it is written.
func KnownChip[S ~string](chips map[S]ChipProps, state S) ChipProps {
	if chip, known := chips[state]; known {
		return chip
	}
	return ChipProps{"circle-help", string(state), Mute}
}

var deliveryChips = map[delivery.State]ChipProps{
	delivery.StatePending:   {"clock", "Pending", Calm},
	delivery.StateDelivered: {"circle-check", "Delivered", Good},
	delivery.StateRetrying:  {"refresh-cw", "Retrying", Warn},
	delivery.StateFailed:    {"circle-x", "Failed", Bad},
	delivery.StateCancelled: {"ban", "Cancelled", Mute},
	madeGood:                {"circle-check", "Made good", Mute},
}

// DeliveryChip describes a delivery's state.
func DeliveryChip[S ~string](state S) ChipProps {
	return KnownChip(deliveryChips, delivery.State(state))
}

// WaitingDeliveries is a pseudo-state of the list of deliveries: those with another attempt
// to come.
const WaitingDeliveries = "waiting"

// madeGood is the state shown for a failed delivery whose event arrived by another delivery.
const madeGood = "made_good"

// DeliveryChipOf is DeliveryChip, and also shows whether a failure was made good.
func DeliveryChipOf(d delivery.Delivery) ChipProps {
	if d.MadeGoodBy != nil {
		return DeliveryChip(madeGood)
	}
	return DeliveryChip(d.State)
}

// StatusWord is the status of an event in words: codes of the API are translated, the rest
// are words already.
func StatusWord(status string) string {
	if chip, known := fundingChips[lending.FundingStatus(status)]; known {
		return chip.Word
	}
	switch status {
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

var subscriptionChips = map[subscription.State]ChipProps{
	subscription.StateActive:  {"circle-check", "Active", Good},
	subscription.StateFailing: {"triangle-alert", "Failing", Bad},
	subscription.StatePaused:  {"pause", "Paused", Mute},
	subscription.StateDeleted: {"trash-2", "Deleted", Mute},
}

// SubscriptionChip describes a subscription's state.
func SubscriptionChip(state subscription.State) ChipProps {
	return KnownChip(subscriptionChips, state)
}

var fundingChips = map[lending.FundingStatus]ChipProps{
	lending.FundingRequested:  {"clock", "Requested", Calm},
	lending.FundingProcessing: {"loader", "Processing", Calm},
	lending.FundingSettled:    {"circle-check", "Settled", Good},
	lending.FundingCancelled:  {"ban", "Cancelled", Mute},
	lending.FundingReturned:   {"rotate-ccw", "Returned", Bad},
}

// FundingChip describes the funding status of a draw.
func FundingChip(status string) ChipProps {
	return KnownChip(fundingChips, lending.FundingStatus(status))
}

var taskChips = map[lending.TaskStatus]ChipProps{
	lending.TaskPending:   {"clock", "Pending", Warn},
	lending.TaskCompleted: {"circle-check", "Completed", Good},
	lending.TaskCancelled: {"ban", "Cancelled", Mute},
}

// TaskChip describes a task's status.
func TaskChip(status string) ChipProps { return KnownChip(taskChips, lending.TaskStatus(status)) }

// applicationChips have no words, because the statuses are words.
var applicationChips = map[lending.ApplicationStatus]ChipProps{
	lending.StatusPendingReview:         {Icon: "clock", Tone: Calm},
	lending.StatusHardPullAuthorization: {Icon: "triangle-alert", Tone: Warn},
	lending.StatusPendClearance:         {Icon: "triangle-alert", Tone: Warn},
	lending.StatusHardPull:              {Icon: "loader", Tone: Calm},
	lending.StatusApproved:              {Icon: "circle-check", Tone: Good},
	lending.StatusDeclined:              {Icon: "circle-x", Tone: Bad},
	lending.StatusClosed:                {Icon: "lock", Tone: Mute},
}

// ApplicationChip describes an application's status.
func ApplicationChip(status string) ChipProps {
	chip := KnownChip(applicationChips, lending.ApplicationStatus(status))
	chip.Word = status
	return chip
}

// AnswerChip describes the HTTP status of one of our answers.
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
