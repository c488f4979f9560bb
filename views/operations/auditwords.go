package operations

import (
	"encoding/json"
	"strings"

	"drawbridge/views/ui"
)

// actionWords are the actions of the audit log in words.
//
//nolint:gosec // words about secrets, none of which is one
var actionWords = map[string]string{
	"api_requests.export":            "Downloaded API requests",
	"application.accept_offer":       "Accepted an offer",
	"application.amount":             "Changed the approved amount",
	"application.create":             "Created an application",
	"application.decide":             "Ran the decision",
	"application.document":           "Recorded loan documents",
	"application.export":             "Downloaded applications",
	"application.hold":               "Put a legal hold",
	"application.release":            "Lifted the legal hold",
	"application.status":             "Moved an application",
	"application.terms":              "Changed the terms",
	"attention.release":              "Gave an item back",
	"attention.resolve":              "Resolved an item",
	"attention.snooze":               "Put an item off",
	"attention.take":                 "Took an item",
	"attention.wake":                 "Brought an item back",
	"audit_log.export":               "Downloaded the audit log",
	"backup.record":                  "Recorded a backup",
	"bulk_resend.cancel":             "Cancelled a bulk re-send",
	"bulk_resend.confirm":            "Confirmed a bulk re-send",
	"bulk_resend.draft":              "Drafted a bulk re-send",
	"bulk_resend.export":             "Downloaded a bulk re-send",
	"bulk_resend.options":            "Changed a bulk re-send's options",
	"bulk_resend.pause":              "Paused a bulk re-send",
	"bulk_resend.resume":             "Resumed a bulk re-send",
	"client.create":                  "Issued credentials",
	"client.rate":                    "Changed a rate limit",
	"client.revoke":                  "Revoked credentials",
	"client.rotate":                  "Rotated a client's secret",
	"delivery.cancel":                "Cancelled a delivery",
	"delivery.examine_signature":     "Examined a signature",
	"delivery.export":                "Downloaded deliveries",
	"delivery.resend":                "Re-sent a delivery",
	"document.download":              "Downloaded a document",
	"draw.cancel":                    "Cancelled a draw",
	"draw.status":                    "Recorded a draw's funding",
	"email.export":                   "Downloaded e-mails",
	"email.resend":                   "Re-sent an e-mail",
	"event.export":                   "Downloaded events",
	"health_settings.update":         "Changed the health settings",
	"job.cancel":                     "Cancelled a job",
	"job.retry":                      "Ran a job again",
	"loan.export":                    "Downloaded loans",
	"draw.export":                    "Downloaded draws under way",
	"mail_settings.update":           "Changed the e-mail settings",
	"merchant.create":                "Created a merchant",
	"merchant.rename":                "Renamed a merchant",
	"partner.create":                 "Created a partner",
	"partner.rename":                 "Renamed a partner",
	"partner.update":                 "Changed a partner",
	"product.active":                 "Offered or withdrew a product",
	"product.overdue":                "Changed when draws of a product are overdue",
	"product.create":                 "Created a product",
	"queue.pause":                    "Paused a queue",
	"queue.resume":                   "Resumed a queue",
	"restore.hold":                   "Held deliveries after a restore",
	"restore.release":                "Released deliveries after a restore",
	"retention.run":                  "Removed what was due",
	"retention.update":               "Changed the retention",
	"river.call":                     "Used the queue library's console",
	"secrets.rotate_begin":           "Began to replace the key of the secrets",
	"secrets.rotate_key":             "Replaced the key of the secrets",
	"settings.retention":             "Changed the retention",
	"settings.sign_in":               "Changed who needs a second factor",
	"subscription.active":            "Subscription works again",
	"subscription.compare_secret":    "Compared a secret",
	"subscription.create":            "Created a subscription",
	"subscription.delete":            "Deleted a subscription",
	"subscription.examine_signature": "Examined a signature",
	"subscription.failing":           "Subscription began to fail",
	"subscription.pause":             "Paused a subscription",
	"subscription.paused":            "Subscription paused by itself",
	"subscription.restore":           "Restored an older version",
	"subscription.resume":            "Resumed a subscription",
	"subscription.rotate_secret":     "Rotated a subscription's secret",
	"subscription.test":              "Sent a test event",
	"subscription.try":               "Tried settings before saving",
	"subscription.update":            "Changed a subscription",
	"task.create":                    "Created a task",
	"task.status":                    "Changed a task",
	"user.create":                    "Added a person",
	"user.disable":                   "Ended a person's access",
	"user.enable":                    "Gave a person access again",
	"user.password":                  "Set a password",
	"user.password_change":           "Changed their password",
	"user.password_reset":            "Reset a person's password",
	"user.recovery_codes":            "Made new recovery codes",
	"user.role":                      "Changed a person's role",
	"user.second_factor_off":         "Turned their second factor off",
	"user.second_factor_on":          "Turned their second factor on",
	"user.second_factor_reset":       "Reset a person's second factor",
	"user.session_end":               "Ended a session",
	"user.sessions_end":              "Ended all other sessions",
	"user.sign_in":                   "Signed in",
	"user.sign_out":                  "Signed out",
}

// fieldWords are the fields of the audit log's states in words, where the name itself is
// not clear.
var fieldWords = map[string]string{
	"approved_amount":          "approved amount",
	"auth":                     "authentication",
	"chosen_by":                "chosen by",
	"delivery_uid":             "delivery",
	"delivery_uids":            "deliveries",
	"email_uid":                "e-mail",
	"error_class":              "error",
	"events":                   "events",
	"file_uid":                 "file",
	"headers":                  "headers",
	"http_status":              "HTTP status",
	"linked":                   "closed with it",
	"merchant_disbursement_id": "draw",
	"merchant_uid":             "merchant",
	"merchant_uids":            "merchants",
	"merchants":                "merchants",
	"partner_uid":              "partner",
	"previous_until":           "old secret works until",
	"previous_valid_until":     "old secret works until",
	"product_uid":              "product",
	"rate":                     "rate a second",
	"requested_amount":         "requested amount",
	"second_factor_roles":      "roles with a second factor",
	"state":                    "state",
	"task_uid":                 "task",
	"url":                      "endpoint",
	"version":                  "version",
}

// plainWords are the words for values that would mislead readers or mean nothing to them,
// by field and value.
var plainWords = map[string]map[string]string{
	"auth":      {"none": "None", "hmac": "HMAC signature", "bearer": "Bearer token"},
	"merchants": {"[]": "all", "none": "all"},
	"rate":      {"0": "no limit", "none": "no limit"},
}

// valueWords is the value of a field in words; the entries of a list are joined.
func valueWords(field, text string) string {
	if words := plainWords[field][text]; words != "" {
		return words
	}
	var list []string
	if !strings.HasPrefix(text, "[") || json.Unmarshal([]byte(text), &list) != nil {
		return text
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// ActionWords is an action of the audit log in words; one that is not in actionWords is
// described by the parts of its name.
func ActionWords(action string) string {
	if words := actionWords[action]; words != "" {
		return words
	}
	kind, done, found := strings.Cut(action, ".")
	if !found {
		return action
	}
	return ui.Capital(KindWord(kind)) + ": " + strings.ReplaceAll(done, "_", " ")
}
