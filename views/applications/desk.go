package applications

import (
	"fmt"
	"time"

	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/views/ui"
)

// DeskTable lists draws with the next step of each.
func DeskTable(rows []loan.Waiting) ui.TableProps[loan.Waiting] {
	return ui.TableProps[loan.Waiting]{
		Caption: "Draws, oldest request first",
		RowID:   func(w loan.Waiting) string { return fmt.Sprintf("draw-%d", w.ID) },
		Rows:    rows,
		Columns: []ui.Column[loan.Waiting]{
			ui.Chips("State", "w-state w-status", func(w loan.Waiting) ui.ChipProps {
				chip := ui.FundingChip(string(w.Status))
				if w.Overdue {
					chip.Icon, chip.Word, chip.Tone = "triangle-alert", chip.Word+", overdue", ui.Bad
				}
				return chip
			}),
			{Title: "Borrower", Header: true, Class: "w-sixth", Cell: deskNameCell},
			{Title: "Next step", Class: "col-a wrap", Cell: deskStepCell},
			ui.Amounts("Net", "col-b w-amount end",
				func(w loan.Waiting) *lending.Money { return &w.Net }).Titled(),
			ui.Texts("Business hours", "col-b w-amount end", func(w loan.Waiting) string {
				if !w.Status.IsPending() {
					return ""
				}
				return fmt.Sprintf("%.1f", w.Age.Hours())
			}).Titled(),
			ui.Times("In state since", "w-time end",
				func(w loan.Waiting) time.Time { return w.Since }).Titled(),
		},
	}
}
