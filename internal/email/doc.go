// Package email keeps the e-mail log and sends the mails in it.
//
// A mail is a row, written with its job in the transaction that caused it:
//
//	            ┌────────────► suppressed   communications are paused
//	            │
//	Schedule ───┴─► queued ──► sent         the server answered 2xx
//	                  ▲  │───► failed       refused (5xx), retries used up,
//	                  └──┘                  or outcome unknown
//	                 4xx │───► not_sent     no mail server is configured
//	                     │───► captured     a sandbox sends borrowers nothing
//
// A queued mail may wait, without a job, for reasons that are not its own: until the mail server no
// longer refuses this installation (its address, credentials or sender), or, after such an answer,
// this mail alone; or until the application's welcome mail is concluded. See [MailSender.Resume].
//
// # At most one successful send
//
// SMTP cannot be made exactly-once: between the dot that ends a message and
// the server's answer, only the server knows. This package errs on the side of
// not sending twice.
//
//   - An attempt is a row that exists before a connection is opened.
//   - The message is transmitted up to, but without, its closing dot. Then the
//     attempt is marked as handed over and that mark is committed, and only
//     then does the dot leave. Whatever dies before the mark was not sent, and
//     is tried again; a server drops a message whose dot never came.
//   - The mark is refused when another process has taken the mail over
//     meanwhile, so a process that was frozen and wakes up cannot send it too.
//   - Whatever is handed over and has no recorded answer is never tried again
//     by itself: the mail is failed, OutcomeUnknown is set and the reason
//     begins with "outcome unknown". A person may re-send it, knowing that.
//
// The window in which that happens opens when the mark is committed and closes
// when the answer is: one round trip to the mail server, its time to accept the
// message, and one commit. With a server on the same machine it is about 2 ms.
// While the database is away the window stays open, and the process stays, too: it writes the
// outcome when it can.
// A server that hangs up in the middle of a message is noticed before the mark.
//
// Rendering is not done here: the worker supplies a RenderFunc, so that this package imports no
// templates. The rendered text is kept, and every attempt sends the same bytes under the same
// message id.
package email
