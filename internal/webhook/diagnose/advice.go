package diagnose

import (
	"net/http"

	"drawbridge/internal/webhook/sender"
)

// checkEndpoint is the default advice.
const checkEndpoint = "Ask the partner to look at the endpoint's log around that time."

// adviceStopped is the advice when the outcome of a request is unknown.
const adviceStopped = "Our process was stopped. Nobody knows whether the endpoint received the " +
	"event: re-sending may deliver it twice."

// owners are the owners of causes that are not the partner's.
var owners = map[sender.Cause]Owner{
	sender.CauseNameServer: OwnerNetwork, sender.CauseDNSTime: OwnerNetwork,
	sender.CauseUnreachable: OwnerNetwork,
	sender.CauseURL:         OwnerUs, sender.CauseNoConnect: OwnerUs,
	sender.CauseStopped: OwnerUs, sender.CauseProcessDied: OwnerUs,
}

// adviceByCause has every cause except CauseStatus, for which the status decides.
var adviceByCause = map[sender.Cause]string{
	sender.CauseNoName: "Check the host name in the subscription for a typing mistake. If it is " +
		"right, the partner's DNS entry is missing.",
	sender.CauseNoAddress: "The partner has to give the name an A or AAAA record.",
	sender.CauseNameServer: "Usually passes. If other subscriptions fail too, check our own " +
		"resolver; if not, the partner's name servers.",
	sender.CauseDNSTime: "Usually passes. If other subscriptions fail too, check our own resolver; " +
		"if not, the partner's name servers.",
	sender.CauseBlocked: "The name has to lead to public addresses only. For an endpoint in a " +
		"network of our own, allow its range in DRAWBRIDGE_WEBHOOK_ALLOW.",
	sender.CauseURL: "The subscription's URL does not meet the rules in force now. Change the URL, " +
		"or DRAWBRIDGE_WEBHOOK_ALLOW.",
	sender.CauseRefused: "Nothing listens on that port. Ask the partner whether the endpoint is " +
		"running, and whether the port in the URL is right.",
	sender.CauseUnreachable: "There is no way from here to that address. If only this endpoint is " +
		"affected, a firewall of the partner may drop our packets.",
	sender.CauseNoConnect: "The connection failed on our side. Look at the error text, and at the " +
		"limits for open files and ports of this machine.",
	sender.CauseConnectTime: "The address does not answer at all. Most often a firewall drops our " +
		"packets: ask the partner to let our addresses in.",
	sender.CauseExpired: "The partner has to renew the certificate and load it on every node.",
	sender.CauseNotYet: "The partner has to install a certificate that is valid now. Check our " +
		"clock too.",
	sender.CauseWrongName: "The partner needs a certificate for the name in the URL, or the URL has " +
		"to use a name of the certificate.",
	sender.CauseUntrusted: "The partner has to send the whole certificate chain from a public " +
		"authority. For a private one, add it to SSL_CERT_FILE.",
	sender.CauseBadCert: "The partner has to replace the certificate.",
	sender.CauseNoTLS: "The port answers without TLS. The URL probably names the port for plain " +
		"http.",
	sender.CauseAlert: "The endpoint wants something that we do not offer, such as a client " +
		"certificate or an old protocol version. Ask the partner for its TLS settings.",
	sender.CauseHandshake: "Something on the way ended the handshake: a load balancer without a " +
		"certificate for this name, or a firewall. Ask the partner.",
	sender.CauseTLSTime: "The endpoint accepts connections but does not begin to work on them. It " +
		"is overloaded or hangs: ask the partner.",
	sender.CauseAnswerTime: "The endpoint has to answer at once and do its work afterwards. It may " +
		"have received the event: ask the partner before re-sending.",
	sender.CauseClosed: "The endpoint, or a proxy before it, closed the connection. It may have " +
		"crashed on this event: ask the partner for its log.",
	sender.CauseReset: "The endpoint, or a firewall before it, cut the connection. Ask the partner " +
		"for its log.",
	sender.CauseNotHTTP: "What listens there is not a web server, or a broken one. Check the port " +
		"in the URL.",
	sender.CauseHeadTooBig: "The endpoint sends more headers than any client accepts. Ask the " +
		"partner.",
	sender.CauseBadStatus:   "The endpoint has to answer with a status of 200 to 299.",
	sender.CauseStopped:     adviceStopped,
	sender.CauseProcessDied: adviceStopped,
}

// adviceByToken is for statuses with better advice for a request with a credential in a
// header and no signature: the token, or a custom header whose value is not shown.
var adviceByToken = map[int]string{
	http.StatusUnauthorized: "Most often a wrong token, or a custom header with a wrong value. " +
		"Compare them with the partner's.",
	http.StatusForbidden: "Most often a wrong token or custom header, or our addresses are not let " +
		"in. Ask the partner.",
}

// adviceByNothing is for statuses with better advice for a request without any credential.
var adviceByNothing = map[int]string{
	http.StatusUnauthorized: "The endpoint wants credentials, and none were sent. Ask the partner " +
		"which, and set authentication or a header of the subscription.",
	http.StatusForbidden: "The endpoint may want credentials, and none were sent; or our addresses " +
		"are not let in. Ask the partner.",
}

// adviceByStatus is for statuses with better advice than their class. All are the partner's.
var adviceByStatus = map[int]string{
	http.StatusBadRequest: "The endpoint did not accept the content. Its answer may say why; " +
		"compare with the webhook documentation.",
	http.StatusUnauthorized: "Most often a wrong secret. Compare the partner's secret with the " +
		"current one, and examine body and signature.",
	http.StatusForbidden: "Most often a wrong secret, or our addresses are not let in. Ask the " +
		"partner.",
	http.StatusNotFound: "The path in the URL does not exist there. Check it for a typing mistake.",
	http.StatusMethodNotAllowed: "The endpoint does not take POST. Check the path in the URL; a " +
		"redirect in front of it may be missing.",
	http.StatusProxyAuthRequired: "A proxy before the endpoint wants credentials. Ask the partner.",
	http.StatusRequestTimeout:    "The endpoint gave up waiting. It is overloaded: ask the partner.",
	http.StatusGone: "The endpoint was taken away for good. Ask the partner for the new URL, or " +
		"delete the subscription.",
	http.StatusRequestEntityTooLarge: "The endpoint's limit for bodies is too low. Ask the partner.",
	http.StatusUnsupportedMediaType: "The endpoint does not take JSON. Check for a custom " +
		"content-type header in the subscription.",
	http.StatusRequestHeaderFieldsTooLarge: "The custom headers are more than the endpoint takes.",
	http.StatusTooManyRequests: "We send faster than the endpoint allows. Lower the subscription's " +
		"rate, or ask the partner for a higher limit.",
	http.StatusInternalServerError: "The endpoint failed while it worked on the event. " +
		checkEndpoint,
	http.StatusBadGateway: "A proxy of the partner got no answer from the service behind it. " +
		"Usually a deployment or a crash: ask the partner if it lasts.",
	http.StatusServiceUnavailable: "The endpoint is overloaded or in maintenance. Usually passes; " +
		"ask the partner if it lasts.",
	http.StatusGatewayTimeout: "The service behind a proxy of the partner is too slow. The endpoint " +
		"has to answer at once and do its work afterwards.",
}
