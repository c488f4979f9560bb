package ui

import (
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/webhook/delivery"
)

func TestLendingChips(t *testing.T) {
	t.Parallel()
	for _, status := range lending.AllApplicationStatuses() {
		if chip := ApplicationChip(string(status)); chip.Icon == "circle-help" {
			t.Errorf("status %q has no chip of its own", status)
		}
	}
	for _, status := range lending.AllFundingStatuses() {
		if chip := FundingChip(string(status)); chip.Icon == "circle-help" {
			t.Errorf("funding status %q has no chip of its own", status)
		}
	}
	for _, status := range lending.AllTaskStatuses() {
		if chip := TaskChip(string(status)); chip.Icon == "circle-help" {
			t.Errorf("task status %q has no chip of its own", status)
		}
	}
}

func TestStatusWord(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]string{
		"FUNDING_SETTLED": "Settled", "CANCELLED": "Cancelled", "DOCUMENT_SENT": "Sent",
		"cancelled": "Cancelled", "Approved": "Approved", "Completed": "Completed",
	} {
		if got := StatusWord(status); got != want {
			t.Errorf("%s reads %q, want %q", status, got, want)
		}
	}
}

func TestDeliveryChip(t *testing.T) {
	t.Parallel()
	seen := map[ChipProps]delivery.State{}
	for _, state := range delivery.States() {
		chip := DeliveryChip(state)
		if chip.Icon == "" || chip.Word == "" || chip.Tone == "" {
			t.Errorf("%s: %+v lacks icon, word or colour", state, chip)
		}
		if other, ok := seen[chip]; ok {
			t.Errorf("%s and %s look alike", state, other)
		}
		seen[chip] = state
	}
	by := uuid.New()
	made := DeliveryChipOf(delivery.Delivery{State: delivery.StateFailed, MadeGoodBy: &by})
	if _, ok := seen[made]; ok || made.Tone == Bad {
		t.Errorf("a failure that was made good looks like %+v", made)
	}
	if chip := DeliveryChip("resting"); chip.Word != "resting" {
		t.Errorf("an unknown state reads %q, want it as it is", chip.Word)
	}
}
