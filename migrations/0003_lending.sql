-- +goose Up
CREATE TABLE products (
    product_uid             uuid PRIMARY KEY,
    code                    text NOT NULL UNIQUE CHECK (length(code) BETWEEN 1 AND 60),
    name                    text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    term                    text NOT NULL CHECK (term ~ '^[0-9]{1,4}$'),
    interest_rate           numeric(7,4) NOT NULL CHECK (interest_rate BETWEEN 0 AND 100),
    merchant_fee_percentage numeric(7,4) NOT NULL CHECK (merchant_fee_percentage BETWEEN 0 AND 100),
    schedule                text NOT NULL CHECK (schedule ~ '^[0-9]+(\.[0-9]+)?(,[0-9]+(\.[0-9]+)?)*$'),
    min_amount              numeric(14,2) NOT NULL CHECK (min_amount > 0),
    max_amount              numeric(14,2) NOT NULL,
    active                  boolean NOT NULL DEFAULT true,
    created_at              timestamptz NOT NULL,
    CHECK (min_amount <= max_amount)
);

CREATE TABLE applications (
    application_uid      uuid PRIMARY KEY,
    merchant_uid         uuid NOT NULL,
    partner_uid          uuid NOT NULL,
    source               text NOT NULL CHECK (source IN ('partner', 'console')),
    status               text NOT NULL CHECK (status IN ('Pending Review', 'Hard Pull Authorization',
                             'Hard Pull', 'Pend Clearance', 'Approved', 'Declined', 'Closed')),
    communications       text NOT NULL CHECK (communications IN ('paused', 'enabled')),
    external_reference   text CHECK (length(external_reference) <= 200),
    requested_amount     numeric(14,2) NOT NULL CHECK (requested_amount > 0),
    requested_product_uid uuid REFERENCES products,
    borrower_first_name  text NOT NULL,
    borrower_last_name   text NOT NULL,
    borrower_email       text NOT NULL,
    borrower_phone       text,
    borrower_annual_income numeric(14,2) CHECK (borrower_annual_income >= 0),
    project_name         text NOT NULL,
    project_description  text,
    project_address      text,
    decided_at           timestamptz,
    offer_selected       boolean NOT NULL DEFAULT false,
    selected_product_uid uuid REFERENCES products,
    document_status      text CHECK (document_status IN ('DOCUMENT_SENT', 'DOCUMENT_SIGNED')),
    last_event_at        timestamptz,
    created_at           timestamptz NOT NULL,
    updated_at           timestamptz NOT NULL,
    FOREIGN KEY (merchant_uid, partner_uid) REFERENCES merchants (merchant_uid, partner_uid),
    CHECK (offer_selected = (selected_product_uid IS NOT NULL))
);
CREATE INDEX applications_merchant ON applications (merchant_uid, created_at DESC, application_uid DESC);
CREATE INDEX applications_created ON applications (created_at DESC, application_uid DESC);
CREATE INDEX applications_email ON applications (lower(borrower_email));
CREATE INDEX applications_reference ON applications (external_reference) WHERE external_reference IS NOT NULL;

CREATE TABLE offers (
    application_uid             uuid NOT NULL REFERENCES applications,
    product_uid                 uuid NOT NULL REFERENCES products,
    term                        text NOT NULL CHECK (term ~ '^[0-9]{1,4}$'),
    interest_rate               numeric(7,4) NOT NULL CHECK (interest_rate BETWEEN 0 AND 100),
    borrower_max_approved_amount numeric(14,2) NOT NULL CHECK (borrower_max_approved_amount >= 0),
    project_max_approved_amount numeric(14,2) NOT NULL CHECK (project_max_approved_amount >= 0),
    max_amount                  numeric(14,2) NOT NULL,
    approved_amount             numeric(14,2) NOT NULL CHECK (approved_amount > 0),
    merchant_fee_percentage     numeric(7,4) NOT NULL CHECK (merchant_fee_percentage BETWEEN 0 AND 100),
    PRIMARY KEY (application_uid, product_uid),
    CHECK (max_amount = least(borrower_max_approved_amount, project_max_approved_amount)),
    CHECK (approved_amount <= max_amount)
);

-- A loan has its application's identity: a partner knows only one of them.
-- drawn_amount counts every disbursement that is not cancelled; the check beside it is the last
-- line of defence against paying out more than the loan.
CREATE TABLE loans (
    application_uid  uuid PRIMARY KEY REFERENCES applications,
    product_uid      uuid NOT NULL REFERENCES products,
    original_amount  numeric(14,2) NOT NULL CHECK (original_amount > 0),
    loan_amount      numeric(14,2) NOT NULL CHECK (loan_amount > 0),
    drawn_amount     numeric(14,2) NOT NULL DEFAULT 0 CHECK (drawn_amount >= 0),
    opened_at        timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL,
    CHECK (loan_amount <= original_amount),
    CHECK (drawn_amount <= loan_amount)
);

CREATE TABLE loan_stages (
    application_uid  uuid NOT NULL REFERENCES loans,
    stage            integer NOT NULL CHECK (stage >= 1),
    percentage       numeric(7,4) NOT NULL CHECK (percentage > 0 AND percentage <= 100),
    scheduled_amount numeric(14,2) NOT NULL CHECK (scheduled_amount >= 0),
    PRIMARY KEY (application_uid, stage)
);

CREATE TABLE certificates (
    certificate_uid uuid PRIMARY KEY,
    application_uid uuid NOT NULL REFERENCES loans,
    metadata        jsonb,
    created_at      timestamptz NOT NULL
);
CREATE INDEX certificates_application ON certificates (application_uid, created_at DESC);

CREATE TABLE certificate_files (
    file_uid        uuid PRIMARY KEY,
    certificate_uid uuid NOT NULL REFERENCES certificates,
    position        integer NOT NULL CHECK (position >= 1),
    name            text NOT NULL,
    size            bigint NOT NULL CHECK (size > 0),
    content_type    text NOT NULL,
    sha256          text NOT NULL CHECK (sha256 ~ '^[0-9a-f]{64}$'),
    object_key      text NOT NULL UNIQUE,
    UNIQUE (certificate_uid, position)
);

CREATE TABLE disbursements (
    merchant_disbursement_id bigint GENERATED ALWAYS AS IDENTITY (START WITH 1001) PRIMARY KEY,
    application_uid     uuid NOT NULL REFERENCES loans,
    disbursement_number integer NOT NULL CHECK (disbursement_number >= 1),
    stage               integer NOT NULL,
    kind                text NOT NULL CHECK (kind IN ('regular', 'final', 'early')),
    status              text NOT NULL CHECK (status IN ('FUNDING_REQUESTED', 'FUNDING_PROCESSING',
                            'FUNDING_SETTLED', 'CANCELLED')),
    gross_amount        numeric(14,2) NOT NULL CHECK (gross_amount > 0),
    fee_amount          numeric(14,2) NOT NULL CHECK (fee_amount >= 0),
    net_amount          numeric(14,2) NOT NULL CHECK (net_amount >= 0),
    fee_percentage      numeric(7,4) NOT NULL,
    loan_amount_before  numeric(14,2),
    certificate_uid     uuid REFERENCES certificates,
    requested_by        text NOT NULL,
    requested_at        timestamptz NOT NULL,
    processing_at       timestamptz,
    settled_at          timestamptz,
    cancelled_at        timestamptz,
    CHECK (net_amount = gross_amount - fee_amount),
    FOREIGN KEY (application_uid, stage) REFERENCES loan_stages (application_uid, stage),
    UNIQUE (application_uid, disbursement_number)
);
CREATE UNIQUE INDEX disbursements_one_pending ON disbursements (application_uid)
    WHERE status IN ('FUNDING_REQUESTED', 'FUNDING_PROCESSING');
CREATE UNIQUE INDEX disbursements_one_per_stage ON disbursements (application_uid, stage)
    WHERE status <> 'CANCELLED';

CREATE TABLE tasks (
    task_uid        uuid PRIMARY KEY,
    application_uid uuid NOT NULL REFERENCES applications,
    title           text NOT NULL CHECK (length(title) BETWEEN 1 AND 500),
    status          text NOT NULL CHECK (status IN ('Pending', 'Completed', 'cancelled')),
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL
);
CREATE INDEX tasks_application ON tasks (application_uid, created_at);

-- +goose Down
DROP TABLE tasks, disbursements, certificate_files, certificates, loan_stages, loans, offers,
    applications, products;
