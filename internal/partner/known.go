package partner

import (
	"sync"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
)

const (
	// knownLife is how long a process relies on what it has read of a client, counted from before
	// the query. Whoever changes a client waits as long after the commit; every process then uses
	// the change, without any communication between them.
	knownLife = 250 * time.Millisecond
	// knownMost bounds how many credentials a process remembers.
	knownMost = 10_000
)

// acting is a client and the merchant that its request names, if any.
type acting struct {
	client   string
	merchant uuid.NullUUID
}

// known caches recently accepted credentials, so that a busy client does not cost a query with
// each request. The zero value is ready; it is safe for concurrent use.
type known struct {
	mu   sync.Mutex
	kept map[acting]knownCredential
}

type knownCredential struct {
	credential

	until time.Time
}

// get returns the cached credential of a client.
func (k *known) get(who acting) (credential, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	found, ok := k.kept[who]
	return found.credential, ok && time.Now().Before(found.until)
}

// put caches a credential that was queried at a time.
func (k *known) put(who acting, found credential, asked time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept == nil || len(k.kept) >= knownMost {
		k.kept = make(map[acting]knownCredential)
	}
	k.kept[who] = knownCredential{found, asked.Add(knownLife)}
}

// takeHold delays the return of a client's change until every process uses it.
func takeHold(tx *postgres.Tx) { tx.AfterCommit(func() { <-time.After(knownLife) }) }
