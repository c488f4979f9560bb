package applications

import (
	"context"
	"fmt"
	"time"

	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/views/ui"
)

var loanChips = map[string]ui.ChipProps{
	"ready":     {Icon: "circle-check", Word: "Ready to draw", Tone: ui.Good},
	"pending":   {Icon: "clock", Word: "Draw pending", Tone: ui.Calm},
	"blocked":   {Icon: "lock", Word: "Not approved", Tone: ui.Warn},
	"completed": {Icon: "list-checks", Word: "Drawn", Tone: ui.Mute},
}

// LoanChip describes the state of a loan's next draw.
func LoanChip(state string) ui.ChipProps { return ui.KnownChip(loanChips, state) }

// LoanTable lists loans. A loan's page is its application's.
func LoanTable(rows []loan.Summary) ui.TableProps[loan.Summary] {
	return ui.TableProps[loan.Summary]{
		Caption: "Loans, newest first",
		RowID:   func(s loan.Summary) string { return "l-" + s.UID.String() },
		Rows:    rows,
		Columns: []ui.Column[loan.Summary]{
			ui.Chips("State", "w-state w-loan",
				func(s loan.Summary) ui.ChipProps { return LoanChip(string(s.State())) }),
			{Title: "Borrower", Header: true, Cell: loanNameCell},
			ui.Texts("Partner", "col-d w-place", func(s loan.Summary) string { return s.PartnerName }),
			{Title: "Pending or next", Class: "col-b w-next", Named: true, Cell: nextDrawCell},
			ui.Amounts("Amount", "col-a w-amount end",
				func(s loan.Summary) *lending.Money { return &s.Amount }).Titled(),
			ui.Amounts("Drawn", "col-b w-amount end",
				func(s loan.Summary) *lending.Money { return &s.Drawn }).Titled(),
			ui.Amounts("Balance", "col-b w-amount end",
				func(s loan.Summary) *lending.Money { return new(s.Amount.Sub(s.Drawn)) }).Titled(),
			ui.Times("Opened", "w-time w-day end", func(s loan.Summary) time.Time { return s.OpenedAt }),
		},
	}
}

// nextDraw describes the draw in progress, or the next one.
func nextDraw(ctx context.Context, s loan.Summary) string {
	switch {
	case s.PendingID != nil:
		return fmt.Sprintf("draw #%d, %s", *s.PendingID, ui.Amount(ctx, *s.Pending))
	case s.NextStage != nil:
		return fmt.Sprintf("stage %d, %s", *s.NextStage, ui.Amount(ctx, *s.NextAmount))
	}
	return ""
}

// DrawWord is the name of a draw's state.
func DrawWord(state lending.FundingStatus) string { return ui.FundingChip(string(state)).Word }
