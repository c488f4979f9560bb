package main

import (
	"github.com/google/uuid"

	"drawbridge/internal/app"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
)

// subscriptionAudit is a command that changed a subscription.
type subscriptionAudit struct {
	// action is a verb, as the console has it.
	action string
	// before is nil when the subscription is new.
	before *webhook.Subscription
	after  webhook.Subscription
	reason string
}

// auditSubscription keeps in the audit log what a command did with a subscription.
func (env *environment) auditSubscription(
	s *app.Services, tx *postgres.Tx, done subscriptionAudit,
) error {
	entry := operator.Entry{
		Actor: cliActor, Action: "subscription." + done.action, SubjectKind: "subscription",
		Subject: done.after.UID.String(), Reason: done.reason, After: done.after.Audited(),
	}
	if done.before != nil {
		entry.Before = done.before.Audited()
	}
	return s.Operators.Audit(env.ctx, tx, entry)
}

// auditResend keeps in the audit log that deliveries were sent again: an entry for
// each that was named, or one for all that the flags chose.
func (env *environment) auditResend(
	s *app.Services, tx *postgres.Tx, cmd deliveryResendCmd, resent []uuid.UUID,
) error {
	entry := operator.Entry{
		Actor: cliActor, Action: "delivery.resend", SubjectKind: "delivery", Reason: cmd.Reason,
		After: map[string]any{"delivery_uids": resent},
	}
	if len(cmd.UIDs) == 0 {
		entry.Subject = "all that match"
		entry.After = map[string]any{"chosen_by": cmd.deliveryFlags, "count": len(resent)}
		return s.Operators.Audit(env.ctx, tx, entry)
	}
	for _, uid := range cmd.UIDs {
		entry.Subject = uid
		if err := s.Operators.Audit(env.ctx, tx, entry); err != nil {
			return err
		}
	}
	return nil
}
