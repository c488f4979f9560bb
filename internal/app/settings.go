package app

import (
	"errors"

	"drawbridge/internal/config"
	"drawbridge/internal/document"
	"drawbridge/internal/email"
	"drawbridge/internal/listener"
)

// CheckSettings finds, without a database and without creating anything, what keeps a process from
// serving although each setting is well-formed; nil for nothing.
func CheckSettings(settings config.Config) config.Errors {
	var errs config.Errors
	if err := document.CheckBucket(blobURL(settings)); err != nil {
		errs = append(errs, "DRAWBRIDGE_BLOB_URL "+err.Error())
	}
	if _, err := listener.TLS(settings, nil, nil); err != nil {
		wrong, _ := errors.AsType[config.Errors](err) // it returns no other errors
		errs = append(errs, wrong...)
	}
	if _, err := email.ParseSender(settings.MailFrom); err != nil {
		errs = append(errs, "DRAWBRIDGE_MAIL_FROM "+err.Error())
	}
	if settings.SMTPURL != "" {
		if _, err := email.ParseServer(settings.SMTPURL); err != nil {
			errs = append(errs, "DRAWBRIDGE_SMTP_URL "+err.Error())
		}
	}
	return errs
}
