package belief_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"sallyport/memory/belief"
)

func TestSameness(t *testing.T) {
	for _, c := range []struct {
		a, b belief.Value
		same bool
	}{
		{belief.Text("New York"), belief.Text("  NEW YORK "), true},
		{belief.Text("New York"), belief.Text("New  York"), false},
		{belief.Text("straße"), belief.Text("Straße"), true},
		{belief.Text("straße"), belief.Text("STRASSE"), false},
		{belief.Text("café"), belief.Text("cafe"), false},
		{belief.Text("1"), belief.Num(1), false},
		{belief.Text("true"), belief.Bool(true), false},
		{belief.Num(0), belief.Bool(false), false},
		{belief.Num(1), belief.Num(1.0), true},
	} {
		if got := c.a.Key() == c.b.Key(); got != c.same {
			t.Errorf("%v (%s) and %v (%s) are the same: %v, want %v", c.a, c.a.Type(), c.b, c.b.Type(), got, c.same)
		}
	}
}

func TestParseValue(t *testing.T) {
	for _, c := range []struct {
		raw  string
		want string // as JSON
		err  error
	}{
		{`"  a b  "`, `"a b"`, nil},
		{`""`, "", belief.ErrEmpty},
		{`"   "`, "", belief.ErrEmpty},
		{`0`, `0`, nil},
		{`-0`, `0`, nil},
		{`1.0`, `1`, nil},
		{`1e21`, `1e+21`, nil},
		{`12345678901234567890`, `12345678901234567000`, nil},
		{`1e400`, "", belief.ErrRange},
		{`false`, `false`, nil},
		{`null`, "", belief.ErrNotScalar},
		{`[1]`, "", belief.ErrNotScalar},
		{`{}`, "", belief.ErrNotScalar},
		{``, "", belief.ErrNotScalar},
	} {
		v, err := belief.ParseValue(json.RawMessage(c.raw))
		if !errors.Is(err, c.err) {
			t.Errorf("%s: error %v, want %v", c.raw, err, c.err)
			continue
		}
		if err != nil {
			continue
		}
		if got, _ := json.Marshal(v); string(got) != c.want {
			t.Errorf("%s becomes %s, want %s", c.raw, got, c.want)
		}
		var back belief.Value
		if err := json.Unmarshal([]byte(c.want), &back); err != nil || back.Key() != v.Key() {
			t.Errorf("%s read back as %v, %v", c.want, back, err)
		}
	}
	t.Run("a long value has a key as short as any", func(t *testing.T) {
		if a, b := belief.Text(strings.Repeat("x", 1<<20)).Key(), belief.Text("x").Key(); len(a) != len(b) || a == b {
			t.Fatalf("keys %q and %q", a, b)
		}
	})
}

func TestNumbersInSentences(t *testing.T) {
	for raw, want := range map[string]string{
		"1": "1", "-2.50": "-2.5", "1e21": "1000000000000000000000", "1e-7": "0.0000001", "12345678901234567890": "12345678901234567000",
	} {
		v, err := belief.ParseValue(json.RawMessage(raw))
		if err != nil || v.String() != want {
			t.Errorf("%s reads %s, %v; want %s", raw, v, err, want)
		}
	}
}

func TestCanonicalNames(t *testing.T) {
	long := strings.Repeat("a", 64)
	for spelled, want := range map[string]string{
		"Has Space": "has_space", "dash-ed": "dash_ed", "a.b": "a_b", "_x": "x", "x_": "x", "x__y": "x_y", "camelCase": "camelcase",
		"naïve": "na_ve", long: long, " UPPER ": "upper", "pred:col": "pred_col",
		long + "a": "", "1abc": "", "é": "", "___": "", "": "",
	} {
		got, err := belief.Open().Canonical(spelled)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("open: %q is %q, %v; want %q", spelled, got, err, want)
		}
	}
	if got, err := belief.Closed().Canonical(" Uses Technology "); got != "Uses Technology" || err != nil {
		t.Errorf("closed: a name is only trimmed, got %q, %v", got, err)
	}
}

func TestPartners(t *testing.T) {
	for name, want := range map[string]string{"likes": "dislikes", "dislikes": "likes", "owns": "gave_away", "cancelled": "plans", "name": "", "nothing": ""} {
		if got := strings.Join(belief.Open().Partners(name), " "); got != want {
			t.Errorf("partners of %s: %q, want %q", name, got, want)
		}
	}
}
