package agent_test

import (
	"testing"
	"time"

	"sallyport/memory/agent"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestTake(t *testing.T) {
	podA, podB, none := agent.Owner{Pod: "a"}, agent.Owner{Pod: "b"}, agent.Owner{}
	live, over := now.Add(time.Second), now
	for _, c := range []struct {
		rule               string
		lease              agent.Lease
		me                 agent.Owner
		myRank, holderRank int64
		want               agent.Verdict
	}{
		{"a lease that nobody had is anyone's", agent.Lease{}, podA, 1, 0, agent.Granted},
		{"a lease that was released is anyone's", agent.Lease{Epoch: 4, Owner: podA, Expires: live}, podB, 2, 1, agent.Granted},
		{"a lease that has run out is anyone's", agent.Lease{Held: true, Owner: podB, Expires: over}, none, 1, 2, agent.Granted},
		{"and its own owner's, whose client crashed", agent.Lease{Held: true, Owner: podA, Expires: over}, podA, 1, 1, agent.Granted},
		{"a live lease is not taken twice by its owner", agent.Lease{Held: true, Owner: podA, Expires: live}, podA, 1, 1, agent.AlreadyResumed},
		{"a newer pod takes a live lease at once", agent.Lease{Held: true, Owner: podA, Expires: live}, podB, 2, 1, agent.Granted},
		{"the older pod does not take it back", agent.Lease{Held: true, Owner: podB, Expires: live}, podA, 1, 2, agent.HeldElsewhere},
		{"a pod takes over from a key without a session", agent.Lease{Held: true, Owner: none, Expires: live}, podA, 2, 1, agent.Granted},
		{"a key without a session puts no pod aside", agent.Lease{Held: true, Owner: podA, Expires: live}, none, 2, 1, agent.AlreadyResumed},
		{"two connections of one pod wait for each other", agent.Lease{Held: true, Owner: agent.Owner{Pod: "a", Connection: "1"}, Expires: live}, agent.Owner{Pod: "a", Connection: "2"}, 2, 1, agent.HeldElsewhere},
	} {
		t.Run(c.rule, func(t *testing.T) {
			if got := agent.Take(c.lease, c.me, c.myRank, c.holderRank, now); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestStand(t *testing.T) {
	podA := agent.Owner{Pod: "a"}
	held := agent.Lease{Epoch: 3, Held: true, Owner: podA, Expires: now.Add(-time.Hour)}
	for _, c := range []struct {
		rule    string
		session *agent.Session
		lease   agent.Lease
		want    agent.Standing
	}{
		{"who never resumed has not resumed", nil, held, agent.NotResumed},
		{"nor has who released", &agent.Session{Owner: podA, Epoch: 3}, held, agent.NotResumed},
		{"who deferred holds nothing", &agent.Session{Owner: podA, Resumed: true}, held, agent.Deferred},
		{"a lease that has run out is its owner's until somebody takes it", &agent.Session{Owner: podA, Resumed: true, Epoch: 3}, held, agent.Holding},
		{"an older epoch is lost", &agent.Session{Owner: podA, Resumed: true, Epoch: 2}, held, agent.Lost},
		{"another owner's epoch is lost", &agent.Session{Owner: agent.Owner{Pod: "b"}, Resumed: true, Epoch: 3}, held, agent.Lost},
		{"a lease that was released is nobody's", &agent.Session{Owner: podA, Resumed: true, Epoch: 3}, agent.Lease{Epoch: 3, Owner: podA}, agent.Lost},
	} {
		t.Run(c.rule, func(t *testing.T) {
			if got := agent.Stand(c.session, c.lease); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestSettle(t *testing.T) {
	changed := agent.Settle([]agent.Action{
		{Seq: 1, Class: agent.Pure, Status: agent.Started},
		{Seq: 2, Class: agent.Idempotent, Status: agent.Started},
		{Seq: 3, Class: agent.External, Status: agent.Started},
		{Seq: 4, Class: agent.External, Status: agent.Unknown, Resolution: "asked, no answer"},
	}, now)
	if len(changed) != 2 {
		t.Fatalf("changed %+v", changed)
	}
	if a := changed[0]; a.Seq != 1 || a.Status != agent.Abandoned || a.EndedAt == nil || a.Resolution == "" {
		t.Errorf("what only reads is abandoned, got %+v", a)
	}
	if a := changed[1]; a.Seq != 3 || a.Status != agent.Unknown || a.EndedAt != nil || a.Resolution == "" {
		t.Errorf("what could happen twice is no longer known, got %+v", a)
	}
}
