-- +goose Up
-- PostgreSQL reads the text of every CHECK anew in each statement that writes to its table, all
-- of them for whatever column. For the tables that an event writes to, that was a quarter of the
-- statement. Their rules stand in functions now, which a session reads once.
--
-- An application is checked when what the rules are about is written, which the time of its last
-- event, moved by every event, is not. The names are those of the constraints.
-- +goose StatementBegin
CREATE FUNCTION drawbridge_check_application() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    broken text := CASE
        WHEN NEW.source NOT IN ('partner', 'console') THEN 'applications_source_check'
        WHEN NEW.status NOT IN ('Pending Review', 'Hard Pull Authorization', 'Hard Pull',
                                'Pend Clearance', 'Approved', 'Declined', 'Closed')
            THEN 'applications_status_check'
        WHEN NEW.communications NOT IN ('paused', 'enabled')
            THEN 'applications_communications_check'
        WHEN length(NEW.external_reference) > 200 THEN 'applications_external_reference_check'
        WHEN NEW.requested_amount <= 0 THEN 'applications_requested_amount_check'
        WHEN NEW.borrower_annual_income < 0 THEN 'applications_borrower_annual_income_check'
        WHEN NEW.document_status NOT IN ('DOCUMENT_SENT', 'DOCUMENT_SIGNED')
            THEN 'applications_document_status_check'
        WHEN NEW.offer_selected <> (NEW.selected_product_uid IS NOT NULL)
            THEN 'applications_check'
    END;
BEGIN
    IF broken IS NULL THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'application % violates the rule "%"', NEW.application_uid, broken
        USING ERRCODE = 'check_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = broken;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER applications_rules
    BEFORE INSERT OR UPDATE OF source, status, communications, external_reference,
        requested_amount, borrower_annual_income, document_status, offer_selected,
        selected_product_uid ON applications
    FOR EACH ROW EXECUTE FUNCTION drawbridge_check_application();
-- As a constraint would be, it is heeded by replication too.
ALTER TABLE applications ENABLE ALWAYS TRIGGER applications_rules;
ALTER TABLE applications
    DROP CONSTRAINT applications_source_check,
    DROP CONSTRAINT applications_status_check,
    DROP CONSTRAINT applications_communications_check,
    DROP CONSTRAINT applications_external_reference_check,
    DROP CONSTRAINT applications_requested_amount_check,
    DROP CONSTRAINT applications_borrower_annual_income_check,
    DROP CONSTRAINT applications_document_status_check,
    DROP CONSTRAINT applications_check;

-- +goose Down
ALTER TABLE applications
    ADD CONSTRAINT applications_source_check CHECK (source IN ('partner', 'console')),
    ADD CONSTRAINT applications_status_check
        CHECK (status IN ('Pending Review', 'Hard Pull Authorization', 'Hard Pull',
                          'Pend Clearance', 'Approved', 'Declined', 'Closed')),
    ADD CONSTRAINT applications_communications_check
        CHECK (communications IN ('paused', 'enabled')),
    ADD CONSTRAINT applications_external_reference_check
        CHECK (length(external_reference) <= 200),
    ADD CONSTRAINT applications_requested_amount_check CHECK (requested_amount > 0),
    ADD CONSTRAINT applications_borrower_annual_income_check CHECK (borrower_annual_income >= 0),
    ADD CONSTRAINT applications_document_status_check
        CHECK (document_status IN ('DOCUMENT_SENT', 'DOCUMENT_SIGNED')),
    ADD CONSTRAINT applications_check CHECK (offer_selected = (selected_product_uid IS NOT NULL));
DROP TRIGGER applications_rules ON applications;
DROP FUNCTION drawbridge_check_application;
