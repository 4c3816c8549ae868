package memory_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/memory"
	"sallyport/memory/agent"
	"sallyport/memory/belief"
)

const namespace = "agents:run-1"

func resume(id string) memory.ResumeArgs {
	return memory.ResumeArgs{AgentArgs: memory.AgentArgs{AgentID: id}}
}

func named(id string) memory.AgentArgs { return memory.AgentArgs{AgentID: id} }

func (r *rig) mustResume(c memory.Caller, args memory.ResumeArgs) agent.Context {
	r.Helper()
	got, err := r.Resume(ctx, c, args)
	if err != nil {
		r.Fatalf("resume: %v", err)
	}
	return got
}

func record(r *rig, c memory.Caller, id, content string) (agent.Turn, error) {
	return r.RecordTurn(ctx, c, memory.TurnArgs{AgentArgs: named(id), Role: "user", Content: content})
}

func turn(t testing.TB, r *rig, c memory.Caller, id, content string) agent.Turn {
	t.Helper()
	got, err := record(r, c, id, content)
	if err != nil {
		t.Fatalf("record turn: %v", err)
	}
	return got
}

// everything calls every operation on an agent but resume, and returns the errors by name.
func everything(r *rig, c memory.Caller, id string) map[string]error {
	seq := int64(1)
	errs := map[string]error{}
	_, errs["agent_context"] = r.AgentContext(ctx, c, named(id))
	_, errs["agent_acquire"] = r.Acquire(ctx, c, named(id))
	_, errs["recent_turns"] = r.RecentTurns(ctx, c, memory.ListArgs{AgentArgs: named(id)})
	_, errs["working_state_history"] = r.StateHistory(ctx, c, memory.ListArgs{AgentArgs: named(id)})
	_, errs["list_pointers"] = r.ListPointers(ctx, c, named(id))
	_, errs["pending_actions"] = r.PendingActions(ctx, c, named(id))
	_, errs["fetch_output"] = r.FetchOutput(ctx, c, memory.RefArgs{AgentArgs: named(id), Ref: "r"})
	_, errs["record_turn"] = record(r, c, id, "x")
	_, errs["update_working_state"] = r.UpdateState(ctx, c, id, nil)
	_, errs["agent_milestone"] = r.Milestone(ctx, c, memory.MilestoneArgs{AgentArgs: named(id), Name: "m"})
	_, errs["store_output"] = r.StoreOutput(ctx, c, memory.OutputArgs{AgentArgs: named(id)})
	_, errs["set_pointer"] = r.SetPointer(ctx, c, memory.PointerArgs{AgentArgs: named(id), Name: "p", Type: "object", Fields: map[string]string{"uri": "u"}})
	_, errs["remove_pointer"] = r.RemovePointer(ctx, c, memory.NameArgs{AgentArgs: named(id), Name: "p"})
	_, errs["begin_action"] = r.BeginAction(ctx, c, memory.BeginArgs{AgentArgs: named(id), Tool: "t", Class: agent.Pure})
	_, errs["end_action"] = r.EndAction(ctx, c, memory.EndArgs{AgentArgs: named(id), Seq: &seq, Status: agent.Done})
	_, errs["agent_release"] = r.Release(ctx, c, named(id))
	return errs
}

func TestANewerPodTakesOverAtOnce(t *testing.T) {
	r := newRig(t, belief.Closed())
	older, newer := as(namespace, "pod-1"), as(namespace, "pod-2")
	first := r.mustResume(older, resume("worker"))
	turn(t, r, older, "worker", "one")
	second := r.mustResume(newer, resume("worker"))
	if second.Epoch <= first.Epoch || second.Fresh || len(second.RecentTurns) != 1 {
		t.Fatalf("got %+v after %+v", second, first)
	}
	t.Run("and the older one is told everywhere that its lease was lost", func(t *testing.T) {
		for name, err := range everything(r, older, "worker") {
			t.Run(name, func(t *testing.T) { refused(t, err, "lease was lost") })
		}
	})
	t.Run("which it does not take back while the newer one lives", func(t *testing.T) {
		_, err := r.Resume(ctx, older, resume("worker"))
		refused(t, err, "lease is held")
	})
	want(t, "the newer one's next turn", turn(t, r, newer, "worker", "two").Seq, 2)
	t.Run("but may when the newer one's lease has ended", func(t *testing.T) {
		r.pass(agent.DefaultTTL)
		r.mustResume(older, resume("worker"))
		_, err := record(r, newer, "worker", "x")
		refused(t, err, "lease was lost")
	})
	t.Run("an agent that was lost and is free again can be read, but not written to", func(t *testing.T) {
		if _, err := r.Release(ctx, older, named("worker")); err != nil {
			t.Fatal(err)
		}
		got, err := r.AgentContext(ctx, newer, named("worker"))
		if err != nil || got.LeaseHeld || got.Epoch != 0 {
			t.Fatalf("got %+v, %v", got, err)
		}
		_, err = record(r, newer, "worker", "x")
		refused(t, err, "lease was lost")
		_, err = r.Acquire(ctx, newer, named("worker"))
		refused(t, err, "lease was lost")
		out, err := r.Release(ctx, newer, named("worker"))
		if err != nil || out.Released {
			t.Fatalf("released: %+v, %v", out, err)
		}
	})
}

func TestACrashedClientsAgentCanBeResumedWhenItsLeaseEnds(t *testing.T) {
	r := newRig(t, belief.Closed())
	c := as(namespace, "pod-1")
	args := resume("worker")
	args.LeaseTTLSeconds = 30
	first := r.mustResume(c, args)
	begin := func(class agent.Class) {
		if _, err := r.BeginAction(ctx, c, memory.BeginArgs{AgentArgs: named("worker"), Tool: string(class), Class: class}); err != nil {
			t.Fatal(err)
		}
	}
	begin(agent.Pure)
	begin(agent.External)
	// The client dies here, and one that starts in its place tries again and again. Its tries are no sign of life.
	for range 29 {
		r.pass(time.Second)
		_, err := r.Resume(ctx, c, args)
		refused(t, err, "already resumed")
		_, err = r.Resume(ctx, c, memory.ResumeArgs{AgentArgs: named("worker"), DeferLease: true})
		refused(t, err, "already resumed")
	}
	r.pass(time.Second)
	got := r.mustResume(c, args)
	if got.Epoch <= first.Epoch {
		t.Errorf("the epoch did not grow: %d after %d", got.Epoch, first.Epoch)
	}
	if len(got.PendingActions) != 1 || got.PendingActions[0].Status != agent.Unknown || !strings.Contains(got.Briefing, got.PendingActions[0].Key) {
		t.Errorf("what was left open is settled in the very answer, got %+v", got.PendingActions)
	}
}

func TestAQuietHolderGoesOnUnlessAnotherTookTheAgent(t *testing.T) {
	r := newRig(t, belief.Closed())
	c := as(namespace, "pod-1")
	first := r.mustResume(c, resume("worker"))
	r.pass(10 * time.Hour)
	want(t, "its next turn", turn(t, r, c, "worker", "thought about it").Seq, 1)
	got, err := r.AgentContext(ctx, c, named("worker"))
	if err != nil {
		t.Fatal(err)
	}
	want(t, "epoch", got.Epoch, first.Epoch)
}

func TestReadsKeepALeaseAlive(t *testing.T) {
	r := newRig(t, belief.Closed())
	running, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { r.Service.Run(running) })
	defer wg.Wait()
	defer stop()
	holder, waiting := as(namespace, ""), memory.Caller{Namespace: namespace, Owner: agent.Owner{Connection: "other"}}
	r.mustResume(holder, resume("worker"))
	for range 5 {
		r.pass(agent.DefaultTTL - time.Second)
		if _, err := r.RecentTurns(ctx, holder, memory.ListArgs{AgentArgs: named("worker")}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := r.Resume(ctx, waiting, resume("worker"))
	refused(t, err, "lease is held")
	t.Run("in the store too, so that every replica knows", func(t *testing.T) {
		deadline := time.Now().Add(20 * time.Second)
		for {
			var expires time.Time
			err := r.store.Read(ctx, namespace, func(rd memory.Reader) error {
				rec, err := rd.Agent("worker")
				expires = rec.Lease.Expires
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if expires.After(r.now()) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("the store has it end at %v", expires)
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
}

func TestARestartLosesNothing(t *testing.T) {
	r := newRig(t, belief.Closed())
	c := as(namespace, "pod-1")
	r.mustResume(c, resume("worker"))
	turn(t, r, c, "worker", "before")
	r.crash()
	want(t, "the same pod simply goes on", turn(t, r, c, "worker", "after").Seq, 2)
	_, err := r.Resume(ctx, c, resume("worker"))
	refused(t, err, "already resumed")
	_, err = r.Resume(ctx, as(namespace, ""), resume("worker"))
	refused(t, err, "already resumed")
}

func TestStoppingHandsLeasesOver(t *testing.T) {
	r := newRig(t, belief.Closed())
	holder, waiting := as(namespace, "pod-2"), as(namespace, "")
	r.mustResume(holder, resume("kept"))
	r.mustResume(holder, resume("taken"))
	if err := r.Close(ctx); err != nil {
		t.Fatal(err)
	}
	r.crash()
	r.mustResume(waiting, resume("taken"))
	want(t, "an agent that nobody took goes on", turn(t, r, holder, "kept", "x").Seq, 1)
	_, err := record(r, holder, "taken", "x")
	refused(t, err, "lease was lost")
}

func TestOneSessionSharesItsAgents(t *testing.T) {
	r := newRig(t, belief.Closed())
	c := as(namespace, "")
	r.mustResume(c, resume("worker"))
	_, err := r.Resume(ctx, c, resume("worker"))
	refused(t, err, "already resumed")
	turn(t, r, c, "worker", "from another client")
	for _, released := range []bool{true, false} {
		out, err := r.Release(ctx, c, named("worker"))
		if err != nil {
			t.Fatal(err)
		}
		want(t, "released", out.Released, released)
	}
	for name, err := range everything(r, c, "worker") {
		if name != "agent_release" {
			refused(t, err, "not resumed")
		}
	}
}

func TestDeferredLease(t *testing.T) {
	r := newRig(t, belief.Closed())
	holder, c := as(namespace, "pod-1"), memory.Caller{Namespace: namespace, Owner: agent.Owner{Pod: "pod-1", Connection: "2"}}
	r.mustResume(holder, resume("worker"))
	deferred := resume("worker")
	deferred.DeferLease = true
	got := r.mustResume(c, deferred)
	want(t, "held", got.LeaseHeld, false)
	_, err := record(r, c, "worker", "x")
	refused(t, err, "lease not acquired")
	_, err = r.StoreOutput(ctx, c, memory.OutputArgs{AgentArgs: named("worker"), Ref: "no ref"})
	refused(t, err, "lease not acquired") // what is wrong besides matters less
	_, err = r.EndAction(ctx, c, memory.EndArgs{AgentArgs: named("worker"), Status: agent.Done})
	refused(t, err, "lease not acquired")
	if out, err := r.Release(ctx, c, named("worker")); err != nil || !out.Released {
		t.Fatalf("a resume without the lease ends too: %+v, %v", out, err)
	}
	r.mustResume(c, deferred)
	_, err = r.Acquire(ctx, c, named("worker"))
	refused(t, err, "lease is held")
	turn(t, r, holder, "worker", "the last word")
	if _, err := r.Release(ctx, holder, named("worker")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		a, err := r.Acquire(ctx, c, named("worker"))
		if err != nil {
			t.Fatal(err)
		}
		if !a.Acquired || a.Epoch == 0 || a.PendingActions == nil || !strings.Contains(a.Briefing, "the last word") {
			t.Fatalf("got %+v", a)
		}
	}
	want(t, "it may write now", turn(t, r, c, "worker", "x").Seq, 2)
}

func TestABoundKeyReachesItsAgentOnly(t *testing.T) {
	r := newRig(t, belief.Closed())
	c := as(namespace, "pod-1")
	c.Agent = "worker"
	r.mustResume(c, resume("worker"))
	_, err := r.Resume(ctx, c, resume("other"))
	refused(t, err, "namespace_mismatch: ")
	for name, err := range everything(r, c, "other") {
		t.Run(name, func(t *testing.T) { refused(t, err, "namespace_mismatch: ") })
	}
}

func TestLongTextsAreStoredApart(t *testing.T) {
	r := newRig(t, belief.Closed())
	c := as(namespace, "")
	args := resume("worker")
	args.OutputThreshold = 100
	r.mustResume(c, args)
	long := strings.Repeat("abcdefghi ", 41)
	got := turn(t, r, c, "worker", long)
	if got.OutputRef == "" || !strings.HasPrefix(got.Content, long[:400]+"...\n") || !strings.Contains(got.Content, got.OutputRef) {
		t.Fatalf("got %+v", got)
	}
	out, err := r.FetchOutput(ctx, c, memory.RefArgs{AgentArgs: named("worker"), Ref: got.OutputRef})
	if err != nil || out.Content != long {
		t.Fatalf("got %d bytes, %v", len(out.Content), err)
	}
	a, err := r.BeginAction(ctx, c, memory.BeginArgs{AgentArgs: named("worker"), Tool: "t", Class: agent.External, Args: long})
	if err != nil || a.ArgsRef != "act-1-args" {
		t.Fatalf("got %+v, %v", a, err)
	}
	a, err = r.EndAction(ctx, c, memory.EndArgs{AgentArgs: named("worker"), Seq: &a.Seq, Status: agent.Done, Result: long, Error: long})
	if err != nil || a.ResultRef != "act-1-result" || a.Error != long || a.EndedAt == nil {
		t.Fatalf("got %+v, %v", a, err)
	}
	t.Run("a made-up ref takes nobody else's", func(t *testing.T) {
		for _, ref := range []string{"out-2-2", "out-2-3"} {
			if _, err := r.StoreOutput(ctx, c, memory.OutputArgs{AgentArgs: named("worker"), Ref: ref, Content: "mine"}); err != nil {
				t.Fatal(err)
			}
		}
		o, err := r.StoreOutput(ctx, c, memory.OutputArgs{AgentArgs: named("worker"), Content: "x"})
		if err != nil || o.Ref != "out-2-4" { // named for the turn that is being worked on, the second
			t.Fatalf("got %+v, %v", o, err)
		}
	})
	_, err = record(r, c, "worker", strings.Repeat("x", agent.MaxContent+1))
	refused(t, err, "at most")
}

func TestNamesAreTrimmed(t *testing.T) {
	r := newRig(t, belief.Closed())
	c := as(namespace, "")
	r.mustResume(c, resume("worker"))
	worker := named("worker")
	var got []any
	note := func(v any, err error) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, v)
	}
	said, err := r.RecordTurn(ctx, c, memory.TurnArgs{AgentArgs: worker, Role: " user ", Name: " ann ", MessageID: " m1 ", Content: " kept "})
	note([]string{said.Role, said.Name, said.MessageID, said.Content}, err)
	stored, err := r.StoreOutput(ctx, c, memory.OutputArgs{AgentArgs: worker, Ref: " r1 ", Summary: " short ", Content: " kept "})
	note([]string{stored.Ref, stored.Summary}, err)
	fetched, err := r.FetchOutput(ctx, c, memory.RefArgs{AgentArgs: worker, Ref: " r1 "})
	note(fetched.Content, err)
	fields := map[string]string{"empty": " "}
	fields[" uri\t"] = " u "
	pointer, err := r.SetPointer(ctx, c, memory.PointerArgs{AgentArgs: worker, Name: " p ", Type: "object", Fields: fields})
	note([]any{pointer.Name, pointer.Fields}, err)
	removed, err := r.RemovePointer(ctx, c, memory.NameArgs{AgentArgs: worker, Name: " p "})
	note(removed.Removed, err)
	left, err := r.ListPointers(ctx, c, worker)
	note(len(left), err)
	progress := " half "
	state, err := r.Milestone(ctx, c, memory.MilestoneArgs{AgentArgs: worker, Name: " built ", Progress: &progress})
	note([]string{state.LastMilestone, state.Progress}, err)
	begun, err := r.BeginAction(ctx, c, memory.BeginArgs{AgentArgs: worker, Tool: " mail ", Class: agent.External})
	note(begun.Tool, err)
	ended, err := r.EndAction(ctx, c, memory.EndArgs{AgentArgs: worker, Seq: &begun.Seq, Status: agent.Done, Resolution: " asked "})
	note(ended.Resolution, err)
	want(t, "names", asJSON(got), `[["user","ann","m1"," kept "],["r1","short"]," kept ",["p",{"uri":"u"}]," p ",0,["built","half"],"mail","asked"]`)
}

func asJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func TestMemoriesInABriefing(t *testing.T) {
	r := newRig(t, belief.Closed())
	c := as(namespace, "")
	r.caller = c
	r.remember("user uses_technology Kafka")
	r.remember("user name Ann")
	want(t, "a fresh agent has none", len(r.mustResume(c, resume("worker")).Memories), 0)
	if _, err := r.UpdateState(ctx, c, "worker", map[string]json.RawMessage{"goal": json.RawMessage(`"set up kafka"`)}); err != nil {
		t.Fatal(err)
	}
	got, err := r.AgentContext(ctx, c, named("worker"))
	if err != nil {
		t.Fatal(err)
	}
	want(t, "what its working state speaks of", values(got.Memories), "Kafka")
	if got.Memories[0].DaysAgo != nil || !strings.Contains(got.Briefing, "Kafka") {
		t.Errorf("got %+v", got.Memories)
	}
	for member, found := range map[string]string{
		"goal": "Kafka", "focus": "Kafka", "open_questions": "Kafka",
		"plan": "", "progress": "", "decisions": "", "notes": "", // what was done and thought is not what is looked for
	} {
		said := json.RawMessage(`"about kafka"`)
		if member == "open_questions" || member == "plan" || member == "decisions" {
			said = json.RawMessage(`["about kafka"]`)
		}
		r.mustResume(c, resume(member))
		if _, err := r.UpdateState(ctx, c, member, map[string]json.RawMessage{member: said}); err != nil {
			t.Fatal(err)
		}
		got, err := r.AgentContext(ctx, c, named(member))
		if err != nil {
			t.Fatal(err)
		}
		want(t, "memories by "+member, values(got.Memories), found)
	}
}

func TestEndingActions(t *testing.T) {
	r := newRig(t, belief.Closed())
	c := as(namespace, "")
	r.mustResume(c, resume("worker"))
	a, err := r.BeginAction(ctx, c, memory.BeginArgs{AgentArgs: named("worker"), Tool: "t", Class: agent.External})
	if err != nil {
		t.Fatal(err)
	}
	end := func(seq int64, status agent.Status) error {
		_, err := r.EndAction(ctx, c, memory.EndArgs{AgentArgs: named("worker"), Seq: &seq, Status: status})
		return err
	}
	refused(t, end(9, agent.Done), "no action 9")
	refused(t, end(a.Seq, agent.Started), "none of")
	for range 2 { // unknown leaves it open
		if err := end(a.Seq, agent.Unknown); err != nil {
			t.Fatal(err)
		}
	}
	failed, err := r.EndAction(ctx, c, memory.EndArgs{
		AgentArgs: named("worker"), Seq: &a.Seq, Status: agent.Unknown, Result: "half", Error: "timed out", Resolution: "asked",
	})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "as it ended at first", strings.Join([]string{failed.Result, failed.Error, failed.Resolution}, " "), "half timed out asked")
	done, err := r.EndAction(ctx, c, memory.EndArgs{AgentArgs: named("worker"), Seq: &a.Seq, Status: agent.Done, Result: "whole"})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "result and error are the last end's", done.Result+done.Error, "whole")
	want(t, "a resolution stays", done.Resolution, "asked")
	refused(t, end(a.Seq, agent.Done), "already")
}
