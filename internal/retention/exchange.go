package retention

import (
	"context"
	"fmt"

	"drawbridge/internal/postgres"
)

// lockMonth takes every lock that the exchange needs, each with a short timeout, because anyone
// queued behind it waits as long. The order is that in which the rest of the program takes them. No
// other table is locked, since no foreign key refers to one.
const lockMonth = `SET LOCAL lock_timeout = '50ms';
	LOCK TABLE application_holds IN SHARE MODE;
	LOCK TABLE ONLY events, ONLY deliveries, ONLY attempts IN ACCESS EXCLUSIVE MODE`

// copyUnsettledAgain copies the deliveries again that had not arrived, directly or by a re-send,
// when they were first copied; nothing else of an old month changes.
//
//nolint:unqueryvet // as survivors
const copyUnsettledAgain = `
	CREATE TEMP TABLE unsettled ON COMMIT DROP AS
		SELECT delivery_uid, created_at
		  FROM deliveries{k}
		 WHERE state <> 'delivered' AND made_good_by IS NULL;
	DELETE FROM attempts{k} a
		  USING unsettled o
		  WHERE a.delivery_uid = o.delivery_uid AND a.delivery_created_at = o.created_at;
	DELETE FROM deliveries{k} d
		  USING unsettled o
		  WHERE d.delivery_uid = o.delivery_uid AND d.created_at = o.created_at;
	INSERT INTO deliveries{k}
		SELECT d.*
		  FROM unsettled o
		  JOIN deliveries{m} d ON d.delivery_uid = o.delivery_uid AND d.created_at = o.created_at;
	INSERT INTO attempts{k}
		SELECT a.*
		  FROM unsettled o
		  JOIN attempts{m} a ON a.delivery_uid = o.delivery_uid
		                    AND a.delivery_created_at = o.created_at`

// exchange puts the new tables in the place of the month's partitions, if anything is to be kept,
// and removes both otherwise: no later run looks for the tables of a removed month. It does neither
// when a hold was placed or released since the survivors were copied.
func (s *Service) exchange(
	ctx context.Context, m month, holds generation, keep bool,
) (done bool, err error) {
	err = s.DB.InTx(ctx, func(tx *postgres.Tx) error {
		if _, err := tx.ExecContext(ctx, lockMonth); err != nil {
			return fmt.Errorf("locking the month: %w", err)
		}
		now, err := generationOf(ctx, tx)
		if done = err == nil && now == holds; !done {
			return err
		}
		if _, err := tx.ExecContext(ctx, m.in(copyUnsettledAgain)); err != nil {
			return fmt.Errorf("copying deliveries again: %w", err)
		}
		for _, parent := range parents {
			exchange := `DROP TABLE IF EXISTS ` + parent + `{m};`
			if keep {
				exchange += `ALTER TABLE ` + parent + `{k} RENAME TO ` + parent + `{m};
					ALTER TABLE ` + parent + ` ATTACH PARTITION ` + parent + `{m}
					      FOR VALUES FROM ({begin}) TO ({end})`
			} else {
				exchange += `DROP TABLE ` + parent + `{k}`
			}
			if _, err := tx.ExecContext(ctx, m.in(exchange)); err != nil {
				return fmt.Errorf("exchanging %s: %w", parent, err)
			}
		}
		return nil
	})
	return done && err == nil, err
}
