package belief_test

import (
	"strings"
	"testing"
	"time"

	"sallyport/memory/belief"
)

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"Hello, World!":         "hello world",
		"c++ 1.2.3":             "c 1 2 3",
		"state-of-the-art":      "state of the art",
		"CAFÉ Zürich":           "café zürich",
		"東京タワー":                 "東京 京タ タワ ワー",
		"v2東京":                  "v2 東京",
		"北":                     "北",
		" ... ":                 "",
		"prefers_editor: x\x00": "prefers editor x",
	} {
		if got := strings.Join(belief.Words(text), " "); got != want {
			t.Errorf("%q has the words %q, want %q", text, got, want)
		}
	}
}

func TestQueryWords(t *testing.T) {
	for question, want := range map[string]string{
		"What is the editor that I like?":   "editor like",
		"postgres or the postgres database": "postgres database",
		"who are you":                       "who are you", // about nothing but small words
		"":                                  "",
	} {
		if got := strings.Join(belief.QueryWords(belief.Words(question)), " "); got != want {
			t.Errorf("%q is about %q, want %q", question, got, want)
		}
	}
	if n := len(belief.QueryWords(belief.Words(strings.Repeat("a1 b2 c3 ", 100) + manyWords(500)))); n != belief.MaxQueryWords {
		t.Errorf("a long question is searched for %d words, want %d", n, belief.MaxQueryWords)
	}
}

func manyWords(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("w" + strings.Repeat("x", i) + " ")
	}
	return b.String()
}

func TestNamedSpan(t *testing.T) {
	now := time.Date(2026, 3, 18, 15, 0, 0, 0, time.UTC) // a Wednesday
	for question, want := range map[string]string{
		"what did I do today":           "2026-03-18 2026-03-19 what did i do",
		"yesterday":                     "2026-03-17 2026-03-18",
		"3 days ago":                    "2026-03-15 2026-03-16",
		"the plan of two weeks ago":     "2026-03-02 2026-03-09 the plan of",
		"last week":                     "2026-03-09 2026-03-16",
		"this week":                     "2026-03-16 2026-03-23",
		"last month":                    "2026-02-01 2026-03-01",
		"a month ago":                   "2026-02-01 2026-03-01",
		"last saturday":                 "2026-03-14 2026-03-15",
		"last wednesday":                "2026-03-11 2026-03-12",
		"in march":                      "2026-03-01 2026-04-01",
		"trips in november":             "2025-11-01 2025-12-01 trips",
		"last year":                     "2025-01-01 2026-01-01",
		"2025":                          "- 2025",
		"2026-03-01":                    "- 2026 03 01",
		"last words":                    "- last words",
		"99999999999999999999 days ago": "- 99999999999999999999 days ago",
	} {
		span, rest := belief.NamedSpan(belief.Words(question), now)
		got := "-"
		if !span.IsZero() {
			got = span.From.Format(time.DateOnly) + " " + span.To.Format(time.DateOnly)
		}
		if got = strings.TrimSpace(got + " " + strings.Join(rest, " ")); got != want {
			t.Errorf("%q: %s, want %s", question, got, want)
		}
	}
}
