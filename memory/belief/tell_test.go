package belief_test

import (
	"fmt"
	"strings"
	"testing"

	"sallyport/memory/belief"
)

func TestTimeline(t *testing.T) {
	for _, c := range []struct {
		rule, predicate string
		events          []string
		want            string
		now             string
	}{
		{
			"each step tells what it did", "name",
			[]string{"1 name=A", "2 name=B", "3 name-", "4 name-x"},
			"stated +A | replaced +B -A | withdrawn -B | no change", "",
		},
		{"several values ended at once are told in order of text", "did", []string{"1 did=b", "2 did=a", "3 did-"}, "stated +b | stated +a | withdrawn -a -b", ""},
		{"a statement elsewhere is a step when it ended something here", "likes", []string{"1 likes=tea", "2 dislikes=tea", "3 dislikes=mud"}, "stated +tea | withdrawn by dislikes -tea", ""},
		{"what is dated ahead is a step, but not believed now", "name", []string{"1 name=A", "99 name=B"}, "stated +A | replaced +B -A", "A"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			tl := belief.Tell(rules, "s", c.predicate, log(t, c.events...), day(50))
			var got []string
			for _, s := range tl.Steps {
				line := s.Change
				if s.Predicate != c.predicate {
					line += " by " + s.Predicate
				}
				for _, x := range s.Added {
					line += " +" + x[strings.LastIndex(x, " ")+1:]
				}
				for _, x := range s.Removed {
					line += " -" + x[strings.LastIndex(x, " ")+1:]
				}
				got = append(got, line)
			}
			if strings.Join(got, " | ") != c.want {
				t.Errorf("got  %s\nwant %s", strings.Join(got, " | "), c.want)
			}
			if now := strings.Join(tl.Now, "; "); !strings.HasSuffix(now, c.now) || (c.now == "") != (now == "") {
				t.Errorf("now %q, want %q", now, c.now)
			}
		})
	}
	t.Run("nothing recorded is told with empty lists", func(t *testing.T) {
		if tl := belief.Tell(rules, "s", "name", nil, day(1)); tl.Now == nil || tl.Steps == nil {
			t.Fatalf("got %+v", tl)
		}
	})
}

func TestSentences(t *testing.T) {
	for want, event := range map[string]string{
		"s lives in: Bern":                     "1 lives_in=Bern",
		"hello":                                "1 note=hello",
		"took back s lives in: bern":           "1 lives_in-bern",
		"took back everything said of s likes": "1 likes-",
	} {
		if got := log(t, event)[0].Sentence(); got != want {
			t.Errorf("%s is told %q, want %q", event, got, want)
		}
	}
}

func TestCompare(t *testing.T) {
	at := func(events ...string) []belief.Belief { return belief.Fold(rules, log(t, events...)).Held("did") }
	d, differs := belief.Compare("s", "did", at("1 did=A", "2 did=B"), at("2 did=B", "3 did=C"))
	if got := fmt.Sprint(d.Before, d.After, d.Added, d.Removed); !differs || got != "[s did: A s did: B] [s did: B s did: C] [s did: C] [s did: A]" {
		t.Fatalf("got %s, %v", got, differs)
	}
	if _, differs := belief.Compare("s", "did", at("1 did=A"), at("1 did=A", "2 did-A", "3 did=a")); differs {
		t.Fatal("a change that was undone is a difference")
	}
}
