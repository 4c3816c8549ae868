package difftest

import (
	"encoding/json"
	"strings"
)

// odd states and asks what few would: long names, texts that no engine compresses, characters that some engines refuse.
func (g *generator) odd() step {
	random := func(bytes int) string {
		out := make([]byte, bytes)
		for i := range out {
			out[i] = "0123456789abcdef"[g.IntN(16)]
		}
		return string(out)
	}
	subject := pick(g, []string{"ann", "ANN İ", "nul\x00", "a\u2028b", "ﬁ", strings.Repeat("ann ", 1200), random(5000)})
	value := pick(g, []any{"STRASSE", "ẞ", "İ", "nul\x00l", "\x01", "a\nb\tc", "\ufffd", "🙂", "e\u0301", random(60_000), "\\ \" % _ ' ' OR 1", "*", "NEAR(a b)"})
	if g.maybe(3) {
		return made("recall", object{"query": value, "limit": 1000})
	}
	predicate := pick(g, []string{"uses_technology", "note", "name", "project_constraint"})
	return pick(g, []step{
		made("remember", object{"subject": subject, "predicate": predicate, "value": value, "observed_at": g.stated()}),
		made("remember", object{"subject": subject, "predicate": predicate, "value": value, "observed_at": g.stated()}),
		made("recall", object{"subject": subject, "limit": 1000}),
		made("forget", object{"subject": subject, "predicate": predicate, "value": value}),
		made("timeline", object{"subject": subject, "predicate": predicate}),
	})
}

// wrong makes an operation that is refused.
func (g *generator) wrong() step {
	return pick(g, []step{
		made("remember", object{"subject": " ", "predicate": "role", "value": "x"}),
		made("remember", object{"subject": "ann", "predicate": "9", "value": "x"}),
		made("remember", object{"subject": "ann", "predicate": "role", "value": ""}),
		made("remember", object{"subject": "ann", "predicate": "role", "value": nil}),
		made("remember", object{"subject": "ann", "predicate": "role", "value": []int{1}}),
		made("remember", object{"subject": "ann", "predicate": "role", "value": "x", "confidence": 2}),
		made("remember", object{"subject": "ann", "predicate": "role", "value": "x", "source": "hearsay"}),
		made("remember", object{"subject": "ann", "predicate": "role", "value": "x", "observed_at": "then"}),
		made("remember", object{"subject": "ann", "predicate": "role", "value": "x", "observed_at": "2999-01-01T00:00:00Z"}),
		made("remember", object{"text": "t", "statements": []object{{"subject": "ann", "predicate": "role", "value": "x", "evidence": "u"}}}),
		made("forget", object{"subject": "ann"}),
		made("forget", object{"subject": "ann", "predicate": "role", "value": ""}),
		made("forget", object{"subject": "ann", "predicate": "never_defined"}),
		made("recall", object{}),
		made("recall", object{"subject": "ann", "limit": 1001}),
		made("recall", object{"subject": "ann", "min_confidence": -1}),
		made("diff", object{"from": "2024-03-05T00:00:00Z", "to": "2024-03-05T00:00:00Z"}),
		made("diff", object{}),
		made("timeline", object{"subject": "ann", "bogus": 1}),
		made("explain", object{}),
		made("remember", object{"subject": "ann", "predicate": "score", "value": json.RawMessage("1e400")}),
		made("remember", object{"subject": "ann", "predicate": "role", "value": "x", "bogus": 1}),
		made("remember", object{"subject": "ann", "predicate": "role", "value": "x", "replaces": "y"}),
		made("remember", object{"subject": "ann", "predicate": "role", "value": "x", "replaces": []object{{}, {"predicate": "9"}, {"value": 1}}}),
		made("remember", object{"subject": "ann", "predicate": "role", "value": "x", "confidence": nil, "source": "", "kind": nil, "observed_at": nil}),
		made("remember", object{"text": "t"}),
		made("remember", object{"statements": []object{}}),
		made("remember", object{"text": "t", "statements": []object{}, "subject": "ann"}),
		made("remember", object{"text": "t", "statements": []object{{"subject": "", "predicate": "role", "value": "x", "evidence": "t"}}}),
		made("forget", object{"subject": "ann", "predicate": "role", "value": nil}),
		made("forget", object{"subject": "ann", "predicate": "role", "value": 5, "all": true}),
		made("recall", object{"subject": "ann", "limit": -1, "bogus": true}),
		made("recall", object{"subject": "nobody"}),
		made("recall", object{"subject": "ann", "as_of": "2024-03-05"}),
		made("recall", object{"subject": 5}),
		made("diff", object{"from": "2999-01-01T00:00:00Z"}),
		made("history", object{}),
		made("timeline", object{"subject": "ann"}),
		made("predicates", object{"bogus": 1}),
		made("bogus", object{}),
	})
}
