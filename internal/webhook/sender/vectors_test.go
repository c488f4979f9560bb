package sender_test

import (
	"encoding/json"
	"os"
	"testing"

	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/diagnose"
	"drawbridge/internal/webhook/sender"
)

// The vectors were made by another implementation; partners test theirs with them.
// Changing one changes the contract.
func TestSignatureVectors(t *testing.T) {
	t.Parallel()
	var published struct {
		Header  string
		Vectors []struct{ Name, Secret, Body, Signature string }
	}
	vectors, err := os.ReadFile("testdata/signature_vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(vectors, &published); err != nil {
		t.Fatal(err)
	}
	if published.Header != sender.HeaderSignature || len(published.Vectors) < 10 {
		t.Errorf("header %q, %d vectors", published.Header, len(published.Vectors))
	}
	for _, vector := range published.Vectors {
		t.Run(vector.Name, func(t *testing.T) {
			t.Parallel()
			got := sender.Sign(secret.New(vector.Secret), []byte(vector.Body))
			if got != vector.Signature {
				t.Errorf("Sign = %s, want %s", got, vector.Signature)
			}
			verdict := diagnose.Signature(diagnose.SignatureCase{
				Body: []byte(vector.Body), Signature: vector.Signature, Current: secret.New(vector.Secret),
			})
			if verdict.Finding != diagnose.FoundValid {
				t.Errorf("the doctor says %+v", verdict)
			}
		})
	}
}
