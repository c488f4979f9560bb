package email

import (
	"context"
	"fmt"
	"time"

	"drawbridge/internal/postgres"
)

// prepare renders and composes the mail unless an earlier attempt did, and stores the text together
// with the count of attempts in one update, since the row is in many indexes.
func (m *MailSender) prepare(
	ctx context.Context, tx *postgres.Tx, row *Detail, attempts int,
) error {
	if row.Source != "" {
		return nil
	}
	settings, err := LoadSettings(ctx, tx)
	if err != nil {
		return err
	}
	if row.HTML == "" { // a re-send has the text of the first mail
		content, err := m.Render(ctx, Draft{
			ApplicationUID: row.ApplicationUID.UUID, Kind: row.Kind, Params: row.Params,
			Settings: settings,
		})
		if err != nil {
			return fmt.Errorf("rendering e-mail %s: %w", row.EmailUID, err)
		}
		row.Subject, row.HTML, row.Text = content.Subject, content.HTML, content.Text
	}
	row.MessageID = newMessageID(m.From)
	row.Source, err = m.source(row, settings, tx.Now)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		UPDATE emails
		   SET subject       = $2,
		       html_body     = $3,
		       text_body     = $4,
		       message_id    = $5,
		       source        = $6,
		       rendered_at   = $7,
		       attempt_count = $8
		 WHERE email_uid = $1`,
		row.EmailUID, row.Subject, row.HTML, row.Text, row.MessageID, row.Source, tx.Now, attempts)
	if err != nil {
		return fmt.Errorf("keeping the text of e-mail %s: %w", row.EmailUID, err)
	}
	return nil
}

func (m *MailSender) source(row *Detail, settings Settings, now time.Time) (string, error) {
	to, err := headerAddress(row.ToName, row.ToAddress)
	if err != nil {
		return "", err
	}
	parts := messageParts{
		From:      m.From,
		To:        to,
		MessageID: row.MessageID,
		Date:      now,
		Content:   Content{Subject: row.Subject, HTML: row.HTML, Text: row.Text},
	}
	if settings.ReplyTo != "" {
		parts.ReplyTo, err = headerAddress(settings.LenderName, settings.ReplyTo)
		if err != nil {
			return "", err
		}
	}
	return compose(parts)
}
