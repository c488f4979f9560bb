package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
)

// batch measures how long the lender's system waits until one request has settled many draws,
// compared with one request for each of as many others. Webhooks are not sent, since no worker
// runs.
func (b *bench) batch(ctx context.Context, open *cleanup) error {
	rounds, n := b.sizes.rounds, b.sizes.settled
	b.say("batch: %d times %d draws in a request, and in a request each", rounds, n)
	a, err := b.newAPI(ctx, open)
	if err != nil {
		return err
	}
	h := a.harness
	uids, err := h.applications(ctx, a.owner, opened, 2*rounds*n)
	if err != nil {
		return err
	}
	if err := h.drawOn(ctx, a.owner, uids); err != nil {
		return err
	}
	changes, err := h.settlements(ctx, a.owner, uids)
	if err != nil {
		return err
	}
	if err := settle(ctx, h.DB); err != nil {
		return err
	}
	// Connect only now: a connection that is idle for long would be closed.
	system, err := a.newClient(ctx, open, func(tx *postgres.Tx) (partner.Issued, error) {
		return h.Partners.CreateLenderClient(ctx, tx, partner.NewLenderClient{
			Name: "payments", Scopes: []string{string(partner.ScopeFunding)},
		})
	})
	if err != nil {
		return err
	}
	ours, floor, err := settleInRounds(system, changes, rounds, n)
	if err != nil {
		return err
	}
	b.report.addTimes(row{
		Section: "draws settled by the lender API", FloorName: "a request for each",
		Name: fmt.Sprintf("a batch of %d", n),
	}, ours, floor, share{"p50", 0.5, ""}, share{"slowest", 1, "< 2000 ms"})
	var found int
	err = h.DB.GetContext(ctx, &found, `
		SELECT count(DISTINCT application_uid)
		  FROM events
		 WHERE status = 'FUNDING_SETTLED'
		   AND application_uid = ANY ($1)`, pq.Array(uids))
	if err == nil && found != len(uids) {
		err = fmt.Errorf("%d draws were settled, want %d", found, len(uids))
	}
	return err
}

// settleInRounds settles n draws by one request, and alternately as many by one request each.
func settleInRounds(
	system *caller, changes []map[string]any, rounds, n int,
) (ours, floor timing, err error) {
	for range rounds {
		together, each := changes[:n], changes[n:2*n]
		changes = changes[2*n:]
		took, err := measured(func() error {
			return postChange(system, "/disbursements/status", map[string]any{"changes": together})
		})
		if err != nil {
			return timing{}, timing{}, err
		}
		ours.each = append(ours.each, took)
		took, err = measured(func() error {
			for _, one := range each {
				id := one["merchantDisbursementId"]
				err := postChange(system, fmt.Sprintf("/disbursements/%v/status", id),
					map[string]any{"status": one["status"], "reference": one["reference"]})
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return timing{}, timing{}, err
		}
		floor.each = append(floor.each, took)
	}
	return ours, floor, nil
}

// measured returns how long do takes.
func measured(do func() error) (time.Duration, error) {
	began := time.Now()
	err := do()
	return time.Since(began), err
}

// drawOn requests the first draw of each application.
func (h *harness) drawOn(ctx context.Context, t tenant, uids []uuid.UUID) error {
	_, err := drive(ctx, clients, len(uids), func(ctx context.Context, _, i int) error {
		return h.DB.InTx(ctx, func(tx *postgres.Tx) error {
			_, err := h.Loans.RequestDraw(ctx, tx, t.caller(), uids[i], loan.DrawInput{})
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("requesting draws: %w", err)
	}
	return nil
}

// settlements moves the applications' draws to the state before settlement, and returns the
// changes that report them as paid.
func (h *harness) settlements(
	ctx context.Context, t tenant, uids []uuid.UUID,
) ([]map[string]any, error) {
	var ids []int64
	err := h.DB.SelectContext(ctx, &ids, `
		SELECT merchant_disbursement_id
		  FROM disbursements
		 WHERE application_uid = ANY ($1)`, pq.Array(uids))
	if err != nil {
		return nil, fmt.Errorf("looking for draws: %w", err)
	}
	_, err = drive(ctx, clients, len(ids), func(ctx context.Context, _, i int) error {
		return h.DB.InTx(ctx, func(tx *postgres.Tx) error {
			_, _, err := h.Loans.MoveFunding(ctx, tx, t.caller(), ids[i],
				lending.FundingChange{Status: lending.FundingProcessing})
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("moving draws: %w", err)
	}
	changes := make([]map[string]any, len(ids))
	for i, id := range ids {
		changes[i] = map[string]any{
			"merchantDisbursementId": id, "status": lending.FundingSettled,
			"reference": fmt.Sprintf("ACH-%d", id),
		}
	}
	return changes, nil
}

// postChange posts to the lender API.
func postChange(system *caller, path string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("writing a change: %w", err)
	}
	return system.do(call{method: http.MethodPost, path: "/lender/v1" + path, body: string(text)})
}
