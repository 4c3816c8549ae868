package keystoretest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"sallyport/internal/key"
	"sallyport/internal/keystore"
)

// population is who there is: two tenants, two agents of one name, static keys, admins, and keys that opened nothing any
// more.
func population() []keystore.Record {
	of := func(id, tenant, agent, pod, account string) keystore.Record {
		r := signed(id)
		r.Namespace, r.Tenant, r.Agent, r.Session = tenant+":"+agent, tenant, agent, pod
		r.PodNamespace, r.PodUID, r.ServiceAccount = tenant, "uid of "+pod, account
		return r
	}
	made := func(id, namespace, agent, session string) keystore.Record {
		return keystore.Record{
			ID: id, Kind: keystore.Static, Namespace: namespace, Agent: agent, Session: session, SecretHash: key.HashSecret(id), CreatedAt: start,
		}
	}
	expired := of("x-expired", "a", "run", "run-1", "default")
	expired.CreatedAt, expired.ExpiresAt = start.Add(-time.Hour), start.Add(-key.Leeway)
	inLeeway := of("leeway", "a", "run", "run-1", "default")
	inLeeway.CreatedAt, inLeeway.ExpiresAt = start.Add(-time.Hour), start.Add(-key.Leeway+time.Microsecond)
	staticExpired := made("x-static", "a:run", "", "")
	staticExpired.ExpiresAt = start
	return []keystore.Record{
		of("a1", "a", "run", "run-1", "default"), of("a2", "a", "run", "run-2", "ci"), of("a3", "a", "other", "pod", "default"),
		of("b1", "b", "run", "run-1", "default"), of("ab1", "ab", "run", "run-3", "default"), expired, inLeeway,
		made("team", "a", "", ""), made("for-run", "a:run", "", ""), made("bound", "a", "run", "desk"), made("by", "by", "", ""), staticExpired,
		{ID: "x-admin", Kind: keystore.Admin, SecretHash: key.HashSecret("x"), CreatedAt: start},
		of("x-before", "a", "run", "run-1", "default"), // is revoked before
	}
}

// runSelectors holds a store to what revoking many keys at once needs.
func runSelectors(t *testing.T, prepare Factory) {
	now := func() time.Time { return start }
	ctx := context.Background()
	filled := func(t *testing.T) (keystore.Store, keystore.Store) {
		t.Helper()
		open := prepare(t)
		s := open(now)
		for _, r := range population() {
			must(t, s.AddKey(ctx, r))
		}
		must(t, s.Revoke(ctx, "x-before", "an admin's reason", start))
		return s, open(now)
	}

	for name, c := range map[string]struct {
		which keystore.Selector
		ended []string
	}{
		"all, but for admin keys":                {keystore.Selector{All: true}, []string{"a1", "a2", "a3", "ab1", "b1", "bound", "by", "for-run", "leeway", "team"}},
		"a tenant":                               {keystore.Selector{Tenant: "a"}, []string{"a1", "a2", "a3", "bound", "for-run", "leeway", "team"}},
		"an agent, whoever made the key":         {keystore.Selector{Tenant: "a", Agent: "run"}, []string{"a1", "a2", "bound", "for-run", "leeway"}},
		"a session":                              {keystore.Selector{Session: "run-1"}, []string{"a1", "b1", "leeway"}},
		"a session of a tenant":                  {keystore.Selector{Tenant: "b", Session: "run-1"}, []string{"b1"}},
		"a service account":                      {keystore.Selector{PodNamespace: "a", ServiceAccount: "default"}, []string{"a1", "a3", "leeway"}},
		"a service account's keys for one agent": {keystore.Selector{PodNamespace: "a", ServiceAccount: "default", Tenant: "a", Agent: "other"}, []string{"a3"}},
		"a pod":                                  {keystore.Selector{PodUID: "uid of run-2"}, []string{"a2"}},
		"nobody":                                 {keystore.Selector{Tenant: "c"}, nil},
		"what cannot be":                         {keystore.Selector{Session: "\x00\xff"}, nil},
		"a name with the signs of patterns is a name": {keystore.Selector{Tenant: "%"}, nil},
	} {
		t.Run("revoking "+name+" ends those and no other, keeps what was before, and every watcher hears", func(t *testing.T) {
			s, other := filled(t)
			ctx, cancel := context.WithTimeout(ctx, Deadline)
			defer cancel()
			here, there := watch(ctx, t, s), watch(ctx, t, other)
			at := start.Add(time.Second + time.Nanosecond)
			ended, err := s.RevokeMatching(ctx, c.which, "a reason", at)
			must(t, err)
			got := idsOf(ended)
			if slices.Sort(got); !slices.Equal(got, c.ended) {
				t.Errorf("ended %v, want %v", got, c.ended)
			}
			for _, r := range ended {
				if !r.RevokedAt.Equal(at.Truncate(time.Microsecond)) || r.RevokedFor != "a reason" || r.Namespace == "" {
					t.Errorf("returned %+v", r)
				}
			}
			heard := make([]string, len(c.ended))
			for i := range heard {
				select {
				case heard[i] = <-here: // at once: whoever revoked may rely on it
				default:
					t.Fatal("the same process had not heard when RevokeMatching returned")
				}
			}
			if slices.Sort(heard); !slices.Equal(heard, got) {
				t.Errorf("the same process heard of %v", heard)
			}
			for i := range heard {
				select {
				case heard[i] = <-there:
				case <-ctx.Done():
					t.Fatal("another process did not hear of all")
				}
			}
			if slices.Sort(heard); !slices.Equal(heard, got) {
				t.Errorf("another process heard of %v", heard)
			}
			for _, was := range population() {
				is, err := other.Key(ctx, was.ID)
				must(t, err)
				want := map[bool]string{true: "a reason"}[slices.Contains(c.ended, was.ID)]
				if was.ID == "x-before" {
					want = "an admin's reason"
				}
				if is.RevokedFor != want || is.Revoked() != (want != "") {
					t.Errorf("%s: revoked=%t for %q, want %q", was.ID, is.Revoked(), is.RevokedFor, want)
				}
			}
		})
	}

	t.Run("a selector that names nothing, or more than it says, is refused and ends nothing", func(t *testing.T) {
		s, _ := filled(t)
		if _, err := s.RevokeMatching(ctx, keystore.Selector{}, "", start); !errors.Is(err, keystore.ErrNothingSelected) {
			t.Errorf("nothing: %v", err)
		}
		for _, which := range []keystore.Selector{{All: true, Tenant: "a"}, {Agent: "run"}} {
			if _, err := s.RevokeMatching(ctx, which, "", start); err == nil {
				t.Errorf("%+v was taken", which)
			}
		}
		if r, err := s.Key(ctx, "a1"); err != nil || r.Revoked() {
			t.Errorf("%+v, %v", r, err)
		}
	})

	t.Run("many keys end in one call, and every watcher hears of each once", func(t *testing.T) {
		open := prepare(t)
		s, other := open(now), open(now)
		const keys = 1000
		for i := range keys {
			must(t, s.AddKey(ctx, signed(fmt.Sprintf("%016d", i))))
		}
		ctx, cancel := context.WithTimeout(ctx, Deadline)
		defer cancel()
		here, there := watch(ctx, t, s), watch(ctx, t, other)
		ended, err := s.RevokeMatching(ctx, keystore.Selector{Tenant: "agents", Agent: "run-1"}, "", start)
		must(t, err)
		if len(ended) != keys || !slices.IsSorted(idsOf(ended)) {
			t.Errorf("%d keys ended, want %d, the oldest first", len(ended), keys)
		}
		for name, ids := range map[string]<-chan string{"the same process": here, "another process": there} {
			told := map[string]bool{}
			for range keys {
				select {
				case id := <-ids:
					told[id] = true
				case <-ctx.Done():
					t.Fatalf("%s heard of %d", name, len(told))
				}
			}
			if len(told) != keys {
				t.Errorf("%s heard of %d, want %d", name, len(told), keys)
			}
		}
	})
}
