package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"slices"
	"time"
)

// Plan describes one loan from the application to the last draw.
type Plan struct {
	// Amount is what the borrower asks for, as a decimal string.
	Amount string
	// ProductUID is the product to accept, empty for the first offer.
	ProductUID string
}

// certificate is a minimal PDF.
const certificate = "%PDF-1.4\n1 0 obj << /Type /Catalog >> endobj\n" +
	"trailer << /Root 1 0 R >>\n%%EOF\n"

// maxDraws ends a run whose loan is never drawn completely: no schedule has more stages.
const maxDraws = 50

// Run takes the loan through all stages and writes each step to out.
func (p Plan) Run(ctx context.Context, client *Client, out io.Writer) error {
	uid, err := p.open(ctx, client, out)
	if err != nil {
		return err
	}
	for range maxDraws {
		loan, err := client.Loan(ctx, uid)
		if err != nil {
			return err
		}
		if loan.Balance == "0.00" {
			say(out, "paid out: %s in %d draws", loan.Amount, len(loan.Disbursements))
			return nil
		}
		if err := p.draw(ctx, client, uid, len(loan.Disbursements)+1, out); err != nil {
			return err
		}
	}
	return fmt.Errorf("loan %s still has a balance after %d draws", uid, maxDraws)
}

// open takes an application to an open loan and returns its uid.
func (p Plan) open(ctx context.Context, client *Client, out io.Writer) (string, error) {
	// A real program uses the id of its own order here.
	created, err := client.CreateApplication(ctx, "sample-"+rand.Text()[:12], p.Amount)
	if err != nil {
		return "", err
	}
	say(out, "application %s created: %s", created.UID, created.Status)

	decided, err := client.RunDecision(ctx, created.UID)
	if err != nil {
		return "", err
	}
	say(out, "decided: %s, %d offers", decided.Status, len(decided.Offers))
	chosen := slices.IndexFunc(decided.Offers, func(offer Offer) bool {
		return p.ProductUID == "" || offer.ProductUID == p.ProductUID
	})
	switch {
	case len(decided.Offers) == 0:
		return "", fmt.Errorf("no product made an offer for %s", p.Amount)
	case chosen < 0:
		return "", fmt.Errorf("product %s made no offer for %s", p.ProductUID, p.Amount)
	}
	offer := decided.Offers[chosen]
	if err := client.AcceptOffer(ctx, created.UID, offer.ProductUID); err != nil {
		return "", err
	}
	say(out, "accepted %s: %s over %s months at %s %%",
		offer.ProductCode, offer.ApprovedAmount, offer.Term, offer.InterestRate)

	approved, err := client.Approve(ctx, created.UID)
	if err != nil {
		return "", err
	}
	loan, err := client.Loan(ctx, created.UID)
	if err != nil {
		return "", err
	}
	say(out, "%s: a loan of %s in %d stages", approved.Status, loan.Amount, len(loan.Schedule))
	return created.UID, nil
}

// draw previews, draws and settles the next stage.
func (p Plan) draw(
	ctx context.Context, client *Client, uid string, number int, out io.Writer,
) error {
	preview, err := client.Preview(ctx, uid)
	if err != nil {
		return err
	}
	if preview.Refusal != nil {
		return fmt.Errorf("draw %d would be refused: %s: %s",
			number, preview.Refusal.Code, preview.Refusal.Message)
	}
	var draw Draw
	if preview.DocumentsRequired {
		draw.Certificate = []byte(certificate)
		draw.Metadata = map[string]any{
			"projectName":    "Rooftop solar, 8.4 kW",
			"completionDate": time.Now().UTC().Format(time.DateOnly),
		}
	}
	drawn, err := client.RequestDraw(ctx, uid, fmt.Sprintf("%s-draw-%d", uid, number), draw)
	if err != nil {
		return err
	}
	say(out, "draw %d (%s) requested: gross %s, net %s",
		drawn.Number, preview.Kind, drawn.Gross, drawn.Net)
	for _, status := range []string{"FUNDING_PROCESSING", "FUNDING_SETTLED"} {
		moved, err := client.Fund(ctx, drawn.ID, status)
		if err != nil {
			return err
		}
		say(out, "draw %d: %s", drawn.Number, moved.Status)
	}
	return nil
}

// say prints one step; it ignores errors, since they are no reason to stop a loan.
func say(out io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(out, format+"\n", args...)
}
