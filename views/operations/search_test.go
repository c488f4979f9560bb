package operations

import (
	"testing"

	"drawbridge/internal/search"
)

func TestHitsInWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want search.Hit }{
		{
			search.Hit{Kind: search.Event, Title: "document.sent: DOCUMENT_SENT"},
			search.Hit{Kind: search.Event, Title: "Loan documents sent: Sent"},
		},
		{
			search.Hit{Kind: search.Disbursement, Title: "Draw 7", Detail: "FUNDING_SETTLED · ACH_1"},
			search.Hit{Kind: search.Disbursement, Title: "Draw 7", Detail: "Settled · ACH_1"},
		},
		{
			search.Hit{Kind: search.Email, Title: "welcome e-mail to a@b.example", Detail: "not_sent"},
			search.Hit{Kind: search.Email, Title: "Welcome e-mail to a@b.example", Detail: "not sent"},
		},
		{
			search.Hit{Kind: search.Partner, Title: "A: B_C", Detail: "D_E"},
			search.Hit{Kind: search.Partner, Title: "A: B_C", Detail: "D_E"},
		},
	} {
		if got := inWords(c.got); got != c.want {
			t.Errorf("got %+v, want %+v", got, c.want)
		}
	}
}
