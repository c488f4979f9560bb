package subscription

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
)

// Stopped lists the subscriptions that are not sent to because their secret or their
// headers could not be decrypted.
func (s *Service) Stopped(ctx context.Context) ([]uuid.UUID, error) {
	var uids []uuid.UUID
	err := s.DB.SelectContext(ctx, &uids, `
		SELECT subscription_uid
		  FROM subscriptions
		 WHERE stopped_at IS NOT NULL
		   AND state <> 'deleted'
		 ORDER BY subscription_uid`)
	if err != nil {
		return nil, fmt.Errorf("listing stopped subscriptions: %w", err)
	}
	return uids, nil
}

// Reopen starts a stopped subscription again if its secret and headers can be decrypted
// by now, and returns it. Error: NOT_FOUND.
func (s *Service) Reopen(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID,
) (Subscription, error) {
	row, err := Lock(ctx, tx, uid)
	if err != nil {
		return Subscription{}, err
	}
	subscription := s.subscription(row)
	if row.StoppedAt == nil || subscription.Unopened != "" {
		return subscription, nil
	}
	slog.InfoContext(ctx, "a subscription can be sent to again", "subscription", uid)
	subscription.StoppedAt = nil
	return subscription, s.Backlogs.reopen(ctx, tx, row)
}

// reopen starts a subscription, locked by the caller, again.
func (b *Backlogs) reopen(ctx context.Context, tx *postgres.Tx, row Row) error {
	_, err := tx.ExecContext(ctx, `
		UPDATE subscriptions
		   SET stopped_at = NULL
		 WHERE subscription_uid = $1`, row.UID)
	if err != nil {
		return fmt.Errorf("letting subscription %s go on: %w", row.UID, err)
	}
	row.StoppedAt = nil
	return b.follow(ctx, tx, row) // a paused one's deliveries wait until it is resumed
}
