package partner

import (
	"sync"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
)

const (
	// knownLife is for how long a process goes by what it has read of a client, counted from
	// before it asked. Anyone who changes a client waits as long once that is committed, and
	// then every process goes by it, without a word between them.
	knownLife = 250 * time.Millisecond
	// knownMost bounds how many a process remembers.
	knownMost = 10_000
)

// acting is a client and the merchant that it names, if any.
type acting struct {
	client   string
	merchant uuid.NullUUID
}

// known are the credentials that were accepted a moment ago, so that a busy client does not
// cost a query with each call. The zero value is ready; any number of callers may use it.
type known struct {
	mu   sync.Mutex
	kept map[acting]knownCredential
}

type knownCredential struct {
	credential

	until time.Time
}

// get returns what is known of a client.
func (k *known) get(who acting) (credential, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	found, ok := k.kept[who]
	return found.credential, ok && time.Now().Before(found.until)
}

// put remembers what was asked for at a time.
func (k *known) put(who acting, found credential, asked time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept == nil || len(k.kept) >= knownMost {
		k.kept = make(map[acting]knownCredential)
	}
	k.kept[who] = knownCredential{found, asked.Add(knownLife)}
}

// takeHold has the change of a client return when every process goes by it.
func takeHold(tx *postgres.Tx) { tx.AfterCommit(func() { <-time.After(knownLife) }) }
