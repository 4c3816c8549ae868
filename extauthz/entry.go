package extauthz

import (
	"math"
	"slices"
	"time"

	"sallyport/internal/keystore"
)

// entry is what is kept of one key. There may be a hundred thousand, and the garbage collector looks at every pointer in
// each: so the identity is one text, and the kind and the times are numbers.
type entry struct {
	owner      packedIdentity
	secretHash []byte
	expires    instant
	revokedAt  instant
	readAt     time.Duration // since the cache began, and from before the read did: the answer may be that old
	shadow     shadow        // when each of the other TTLs would have read it
	kind       uint8         // of kinds
	revoked    bool
	refused    bool // since it was revoked
}

// kinds are those that the door tells apart. The first is any other.
var kinds = [...]keystore.Kind{"", keystore.Signed, keystore.Static, keystore.Admin}

// set replaces all that a read may find changed.
func (e *entry) set(st *Status, readAt time.Duration) {
	if e.owner.identity() != st.Identity { // else one text serves for as long as the key is kept
		e.owner = pack(st.Identity)
	}
	e.kind = uint8(max(slices.Index(kinds[:], st.Kind), 0))
	e.secretHash, e.expires = st.SecretHash, instantOf(st.ExpiresAt)
	e.revoked, e.revokedAt = st.Revoked, instantOf(st.RevokedAt)
	e.readAt = readAt
}

// status is what was set.
func (e *entry) status() Status {
	return Status{
		State:     keystore.State{Kind: kinds[e.kind], SecretHash: e.secretHash, Revoked: e.revoked, ExpiresAt: e.expires.time()},
		RevokedAt: e.revokedAt.time(),
		Identity:  e.owner.identity(),
	}
}

// instant is a time as key stores keep it, in microseconds since 1970, UTC: a time.Time is three times as large.
type instant int64

const never instant = math.MinInt64 // the zero time

func instantOf(t time.Time) instant {
	if t.IsZero() {
		return never
	}
	return instant(t.UnixMicro())
}

func (i instant) time() time.Time {
	if i == never {
		return time.Time{}
	}
	return time.UnixMicro(int64(i)).UTC()
}
