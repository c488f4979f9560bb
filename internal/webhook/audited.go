package webhook

// Audited is how the audit log writes a subscription: without secrets.
func (s Subscription) Audited() map[string]any {
	headers, merchants := []string{}, []string{}
	for _, header := range s.Headers {
		headers = append(headers, header.String())
	}
	for _, merchant := range s.Merchants {
		merchants = append(merchants, merchant.String())
	}
	return map[string]any{
		"partner_uid": s.PartnerUID, "url": s.URL, "auth": s.Auth, "events": s.Events,
		"merchants": merchants, "headers": headers, "rate": s.Rate,
		"pause_when_failing": s.Watch.Pause, "alert_email": s.Watch.AlertEmail,
		"state": s.State, "version": s.Version,
	}
}
