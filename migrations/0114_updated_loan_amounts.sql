-- +goose NO TRANSACTION
-- +goose Up
-- What a draw said the loan amount is: the amount in force follows from what the draws in force said.
-- loan_amount_before, by which it was taken back, did not tell whether a draw had said anything.
ALTER TABLE disbursements
    ADD COLUMN IF NOT EXISTS updated_loan_amount numeric(14,2),
    DROP CONSTRAINT IF EXISTS disbursements_updated_loan_amount,
    ADD CONSTRAINT disbursements_updated_loan_amount CHECK (updated_loan_amount IS NULL
        OR kind <> 'regular' AND updated_loan_amount >= gross_amount) NOT VALID;

-- A draw of the previous release says only that it revised the amount. It takes all that is left,
-- so the amount is what is drawn with it.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION drawbridge_updated_loan_amount() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.updated_loan_amount := NEW.gross_amount + coalesce((
        SELECT sum(gross_amount)
          FROM disbursements
         WHERE application_uid = NEW.application_uid
           AND status NOT IN ('CANCELLED', 'RETURNED')), 0);
    RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE OR REPLACE TRIGGER disbursements_updated_loan_amount BEFORE INSERT ON disbursements
    FOR EACH ROW WHEN (NEW.loan_amount_before IS NOT NULL AND NEW.updated_loan_amount IS NULL)
    EXECUTE FUNCTION drawbridge_updated_loan_amount();

-- The same of those that are there: what was drawn when one was requested. No other draw is pending
-- then, so none of those before it was cancelled since. Regular draws revise nothing.
UPDATE disbursements d
   SET updated_loan_amount = d.gross_amount + coalesce((
           SELECT sum(before.gross_amount)
             FROM disbursements before
            WHERE before.application_uid = d.application_uid
              AND before.disbursement_number < d.disbursement_number
              AND before.status <> 'CANCELLED'
              AND (before.returned_at IS NULL OR before.returned_at > d.requested_at)), 0)
 WHERE d.loan_amount_before IS NOT NULL
   AND d.updated_loan_amount IS NULL
   AND d.kind <> 'regular';
ALTER TABLE disbursements VALIDATE CONSTRAINT disbursements_updated_loan_amount;

-- Where a draw came back, loan_amount_before may also stand on one that revised nothing, which drew
-- no more than the amount there was; and the loan's amount may be wrong. Each such loan is corrected
-- under the lock of its application.
-- +goose StatementBegin
DO $$
DECLARE
    uid uuid;
BEGIN
    FOR uid IN SELECT DISTINCT application_uid
                 FROM disbursements
                WHERE updated_loan_amount IS NOT NULL
                  AND application_uid IN (SELECT application_uid
                                            FROM disbursements
                                           WHERE status = 'RETURNED')
                ORDER BY application_uid
    LOOP
        PERFORM FROM applications WHERE application_uid = uid FOR NO KEY UPDATE;
        UPDATE disbursements d
           SET updated_loan_amount = NULL
          FROM loans l
         WHERE d.application_uid = uid
           AND l.application_uid = uid
           AND d.updated_loan_amount = coalesce((
                   SELECT before.updated_loan_amount
                     FROM disbursements before
                    WHERE before.application_uid = uid
                      AND before.disbursement_number < d.disbursement_number
                      AND before.updated_loan_amount IS NOT NULL
                      AND before.status <> 'CANCELLED'
                      AND (before.returned_at IS NULL OR before.returned_at > d.requested_at)
                    ORDER BY before.disbursement_number DESC
                    LIMIT 1), l.original_amount);
        UPDATE loans l
           SET loan_amount = greatest(drawn_amount, coalesce((
                   SELECT updated_loan_amount
                     FROM disbursements d
                    WHERE d.application_uid = uid
                      AND d.status NOT IN ('CANCELLED', 'RETURNED')
                      AND d.updated_loan_amount IS NOT NULL
                    ORDER BY d.disbursement_number DESC
                    LIMIT 1), original_amount))
         WHERE l.application_uid = uid;
    END LOOP;
END
$$;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER IF EXISTS disbursements_updated_loan_amount ON disbursements;
DROP FUNCTION IF EXISTS drawbridge_updated_loan_amount();
ALTER TABLE disbursements
    DROP CONSTRAINT IF EXISTS disbursements_updated_loan_amount,
    DROP COLUMN IF EXISTS updated_loan_amount;
