package memory_test

import (
	"fmt"
	"strings"
	"testing"

	"sallyport/memory"
	"sallyport/memory/belief"
)

func (r *rig) note(text, at string) {
	r.Helper()
	out, err := r.RememberNote(ctx, r.caller, memory.NoteArgs{Text: &text, ObservedAt: at})
	if err != nil || !out.KeptAsText || out.Note == "" {
		r.Fatalf("remember %q: %+v %v", text, out, err)
	}
}

func (r *rig) ask(a memory.AskArgs) string {
	r.Helper()
	told, err := r.Ask(ctx, r.caller, a)
	if err != nil {
		r.Fatalf("ask %+v: %v", a, err)
	}
	out := make([]string, len(told.Memories))
	for i, m := range told.Memories {
		out[i] = m.Text
	}
	return strings.Join(out, " | ")
}

func TestWordsAreKeptAndFound(t *testing.T) {
	r := newRig(t, belief.Open())
	r.note("  Tea with Ann ", on(3))
	r.note("coffee with Bob", on(1))
	r.note("moved to Zürich", on(2))
	r.note("tea with ann", on(9))
	for _, c := range []struct {
		rule string
		args memory.AskArgs
		want string
	}{
		{"without a question everything, oldest first", memory.AskArgs{}, "coffee with Bob | moved to Zürich | Tea with Ann"},
		{"a blank question is none", memory.AskArgs{Question: " "}, "coffee with Bob | moved to Zürich | Tea with Ann"},
		{"since an instant, included, newest first", memory.AskArgs{Since: on(2)}, "Tea with Ann | moved to Zürich"},
		{"as it was then", memory.AskArgs{AsOf: on(2)}, "coffee with Bob | moved to Zürich"},
		{"as it was then, since an instant", memory.AskArgs{AsOf: on(2), Since: on(2)}, "moved to Zürich"},
		{"what shares a word with the question", memory.AskArgs{Question: "Who drinks tea?"}, "Tea with Ann"},
		{"and nothing that shares none", memory.AskArgs{Question: "which editor?"}, ""},
		{"a question beside since", memory.AskArgs{Question: "tea or zurich", Since: on(3)}, "Tea with Ann"},
	} {
		want(t, c.rule, r.ask(c.args), c.want)
	}
	told, err := r.Ask(ctx, r.caller, memory.AskArgs{Question: "zurich", AsOf: on(5)})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "the day and how long ago it is", fmt.Sprintf("%+v", told.Memories), "[{Text:moved to Zürich Since:2024-01-03 DaysAgo:3}]")
	d, err := r.Between(ctx, r.caller, memory.BetweenArgs{From: new(on(1)), To: on(8)})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "what began, in alphabetical order", fmt.Sprintf("%+v", d.Changes), "[{Began:[Tea with Ann moved to Zürich] Ended:[]}]")
	h, err := r.AskHistory(ctx, r.caller, memory.ExplainArgs{Question: "tea"})
	if err != nil || h.History == nil || len(h.History) != 0 {
		t.Errorf("history: %+v %v", h, err)
	}
}

func TestAConversationIsKeptAsLines(t *testing.T) {
	r := newRig(t, belief.Open())
	_, err := r.RememberNote(ctx, r.caller, memory.NoteArgs{Messages: []memory.Message{{"user", " I like tea "}, {"assistant", "green\r\nor\nblack"}}})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "kept", r.ask(memory.AskArgs{}), "User: I like tea\nAssistant: green or black")
}

func TestWhatWordsRefuse(t *testing.T) {
	r := newRig(t, belief.Open())
	say := func(role, content string) memory.NoteArgs {
		return memory.NoteArgs{Messages: []memory.Message{{role, content}}}
	}
	for _, c := range []struct {
		args   memory.NoteArgs
		saying string
	}{
		{memory.NoteArgs{}, "nothing to remember"},
		{memory.NoteArgs{Text: new(" ")}, "empty"},
		{memory.NoteArgs{Text: new("x"), Messages: []memory.Message{{"user", "x"}}}, "both"},
		{memory.NoteArgs{Text: new(strings.Repeat("x", 32769))}, "32768"},
		{memory.NoteArgs{Text: new("x"), ObservedAt: on(200)}, "ahead"},
		{memory.NoteArgs{Messages: []memory.Message{}}, "empty"},
		{say("system", "x"), "role"},
		{say("user", " "), "content is empty"},
		{say("user", strings.Repeat("x", 32768)), "32768"},
	} {
		_, err := r.RememberNote(ctx, r.caller, c.args)
		refused(t, err, c.saying)
	}
	_, err := r.ForgetNote(ctx, r.caller, memory.TextArgs{Text: "tea"})
	refused(t, err, "model")
	_, err = r.AskHistory(ctx, r.caller, memory.ExplainArgs{Question: " "})
	refused(t, err, "question")
	_, err = r.Ask(ctx, r.caller, memory.AskArgs{Since: "then"})
	refused(t, err, "since")
}
