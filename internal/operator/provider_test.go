package operator_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"drawbridge/internal/operator"
)

// Sign-ins wait for a slow provider concurrently: it answers here only once both have asked.
func TestSignInsDoNotQueueForTheProvider(t *testing.T) {
	t.Parallel()
	var asked sync.WaitGroup
	asked.Add(2)
	var issuer string
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Done()
		asked.Wait()
		_ = json.NewEncoder(w).Encode(map[string]string{
			"issuer": issuer, "authorization_endpoint": issuer + "/authorize",
			"token_endpoint": issuer + "/token", "jwks_uri": issuer + "/keys",
		})
	}))
	t.Cleanup(provider.Close)
	issuer = provider.URL
	tested := operator.NewProvider(operator.ProviderConfig{Issuer: issuer, ClientID: "console"})
	var signingIn sync.WaitGroup
	for range 2 {
		signingIn.Go(func() {
			if _, _, err := tested.Start(t.Context(), false, time.Now()); err != nil {
				t.Errorf("a sign-in that begins beside another one: %v", err)
			}
		})
	}
	signingIn.Wait()
}
