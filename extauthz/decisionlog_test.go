package extauthz_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/extauthz"
	"sallyport/gateway"
	"sallyport/internal/key"
)

// decisionLog is a DecisionLog whose lines and clock are at hand.
type decisionLog struct {
	*extauthz.DecisionLog
	text bytes.Buffer
	now  time.Time
}

func newDecisionLog(t *testing.T, rates extauthz.LogRates) *decisionLog {
	t.Helper()
	l := &decisionLog{now: time.Unix(1_800_000_000, 0)}
	var err error
	l.DecisionLog, err = extauthz.NewDecisionLog(slog.New(slog.NewJSONHandler(&l.text, nil)), rates,
		func() time.Time { return l.now }, func(context.Context) string { return "4bf92f3577b34da6a3ce929d0e0e4736" })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// decided does what an adapter does for each decision.
func (l *decisionLog) decided(d extauthz.Decision, a extauthz.Asked) {
	if l.Wants(d) {
		l.Write(context.Background(), d, a)
	}
}

// lines returns what was logged since the last call.
func (l *decisionLog) lines(t *testing.T) []map[string]any {
	t.Helper()
	var out []map[string]any
	for d := json.NewDecoder(&l.text); ; {
		var line map[string]any
		err := d.Decode(&line)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		delete(line, "time")
		out = append(out, line)
	}
}

var (
	allowed = extauthz.Decision{Reason: extauthz.ReasonAllowed, Identity: gateway.Identity{
		Namespace: "agents:run-1", Tenant: "agents", Agent: "run-1", Session: "run-1-x7k", KeyID: "d4cef0be64cefff8",
	}}
	revoked = denied(extauthz.ReasonRevoked, http.StatusUnauthorized)
)

func denied(reason extauthz.Reason, status int) extauthz.Decision {
	return extauthz.Decision{Reason: reason, Denial: &gateway.Error{Status: status}}
}

func TestADecisionIsOneLine(t *testing.T) {
	l := newDecisionLog(t, extauthz.LogRates{Allows: 1, Denials: 1})
	asked := extauthz.Asked{Method: "POST", Path: "/v1/recall?q=1", RequestID: "0b7c6c5e-95ab-4b3f-8f0a-4ee5f6c1b7aa", Took: 1500 * time.Microsecond}
	about := revoked
	about.Identity = allowed.Identity
	about.Denial.Cause = errors.New("why")
	l.decided(about, asked)
	l.decided(allowed, asked)
	l.decided(denied(extauthz.ReasonUnavailable, http.StatusServiceUnavailable), extauthz.Asked{})
	got, err := json.Marshal(l.lines(t))
	if err != nil {
		t.Fatal(err)
	}
	const identity = `"agent":"run-1",%"key_id":"d4cef0be64cefff8","level":"INFO","method":"POST","msg":"decision","namespace":"agents:run-1","path":"/v1/recall",`
	const request = `"request_id":"0b7c6c5e-95ab-4b3f-8f0a-4ee5f6c1b7aa","session":"run-1-x7k",%"tenant":"agents","took_us":1500,"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","unlogged":0}`
	line := func(identity2, request2, reason string) string {
		return "{" + strings.Replace(identity, "%", identity2, 1) + `"reason":"` + reason + `",` + strings.Replace(request, "%", request2, 1)
	}
	want := "[" + line(`"cause":"why","decision":"denied",`, `"status":401,`, "revoked") + "," + line(`"decision":"allowed",`, "", "allowed") +
		`,{"decision":"denied","level":"WARN","msg":"decision","reason":"unavailable","status":503,"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","unlogged":0}]`
	if string(got) != want {
		t.Errorf("lines:\n%s\nwant:\n%s", got, want)
	}
}

func TestLinesASecondAreBoundAndSayWhatTheyLeftOut(t *testing.T) {
	l := newDecisionLog(t, extauthz.LogRates{Allows: 2, Denials: 3})
	flood := func(d extauthz.Decision, n int) {
		for range n {
			l.decided(d, extauthz.Asked{})
		}
	}
	unlogged := func() (out []float64) {
		for _, line := range l.lines(t) {
			out = append(out, line["unlogged"].(float64))
		}
		return out
	}
	expect := func(what string, want ...float64) {
		t.Helper()
		got := unlogged()
		if len(got) != len(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
			return
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
		}
	}
	flood(allowed, 100)
	expect("allows", 0, 0)
	flood(denied(extauthz.Reason(key.ReasonMalformed), 401), 1000)
	expect("denials, whatever was allowed", 0, 0, 0)
	flood(revoked, 1)
	expect("one reason's flood hides no other reason", 0)
	flood(denied("of the future", 401), 5)
	expect("a reason that nobody knows", 0, 0, 0)

	l.now = l.now.Add(time.Second)
	flood(allowed, 100)
	expect("the next second's allows", 98, 0)
	flood(denied(extauthz.Reason(key.ReasonMalformed), 401), 1)
	expect("the next second's denials", 997)

	if err := l.SetRates(extauthz.LogRates{Allows: 0, Denials: 4}); err != nil {
		t.Fatal(err)
	}
	l.now = l.now.Add(time.Second)
	flood(allowed, 100)
	expect("no allows are asked for any more")
	flood(revoked, 10)
	expect("the new rate", 0, 0, 0, 0)
	for _, wrong := range []extauthz.LogRates{{Allows: -1}, {Denials: -1}, {Allows: 1 << 40}} {
		if err := l.SetRates(wrong); err == nil {
			t.Errorf("%v was taken", wrong)
		}
	}
	if l.Rates() != (extauthz.LogRates{Allows: 0, Denials: 4}) {
		t.Errorf("a rate that was refused counts: %v", l.Rates())
	}
}

func TestTheBoundHoldsHoweverManyAskAtOnce(t *testing.T) {
	const callers, each, rate = 8, 1000, 10
	l := newDecisionLog(t, extauthz.LogRates{Denials: rate})
	var mu sync.Mutex
	wanted := 0
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			mine := 0
			for range each {
				if l.Wants(revoked) {
					mine++
				}
			}
			mu.Lock()
			defer mu.Unlock()
			wanted += mine
		})
	}
	all.Wait()
	l.Write(t.Context(), revoked, extauthz.Asked{})
	if line := l.lines(t)[0]; wanted != rate || line["unlogged"] != float64(callers*each-rate) {
		t.Errorf("%d lines are wanted, of %d; %v were left out", wanted, callers*each, line["unlogged"])
	}
}

func TestAnAllowThatIsNotLoggedAllocatesNothing(t *testing.T) {
	for name, rates := range map[string]extauthz.LogRates{"none is": {}, "the second's are written": {Allows: 1}} {
		l := newDecisionLog(t, rates)
		l.decided(allowed, extauthz.Asked{})
		if n := testing.AllocsPerRun(100, func() { l.decided(allowed, extauthz.Asked{}) }); n != 0 {
			t.Errorf("%s: %g allocations", name, n)
		}
	}
}

func TestNoTokenIsInTheLog(t *testing.T) {
	l := newDecisionLog(t, extauthz.LogRates{Allows: 1000, Denials: 1000})
	opaque := key.NewSecret().Text
	const pod = "eyJhbGciOiJSUzI1NiIsImtpZCI6ImEifQ.eyJhdWQiOlsicmVjYWxsIl0sInN1YiI6InAifQ.c2lnbmF0dXJl"
	escaped := strings.ReplaceAll(strings.ReplaceAll(opaque, "_", "%5f"), "r", "%72")
	for _, secret := range []string{opaque, opaque[len(opaque)-64:], pod, escaped} {
		for _, a := range []extauthz.Asked{
			{Path: "/v1/recall?token=" + secret},
			{Path: "/v1/recall?a=b?" + secret},
			{Path: "/v1/recall#" + secret},
			{Path: "/v1/keys/" + secret + "/x"},
			{Path: "/" + strings.Repeat("a", 200) + "/" + secret},
			{Path: "/%zz" + secret},
			{RequestID: secret},
			{RequestID: "Bearer " + secret},
			{Method: secret},
		} {
			for _, d := range []extauthz.Decision{allowed, revoked} {
				l.decided(d, a)
			}
		}
	}
	text := l.text.String()
	if n := strings.Count(text, "\n"); n != 72 {
		t.Errorf("%d lines", n)
	}
	for _, part := range []string{opaque[:25], opaque[len(opaque)-64:][:20], "eyJhbGci", "eyJhdWQi", "c2lnbmF0", "Bearer", escaped[:10]} {
		if strings.Contains(text, part) {
			t.Errorf("%s is in\n%s", part, text)
		}
	}
}

func TestWhatIsNoTokenStays(t *testing.T) {
	l := newDecisionLog(t, extauthz.LogRates{Denials: 100})
	for _, a := range []extauthz.Asked{
		{Method: "GET", Path: "/v1/keys/d4cef0be64cefff8", RequestID: "Root=1-67891233-abcdef012345678912345678"},
		{Method: "DELETE", Path: "/caf%C3%A9/a.b", RequestID: "7f1c2a3b4c5d6e7f8091a2b3c4d5e6f7"},
	} {
		l.decided(revoked, a)
		if line := l.lines(t)[0]; line["method"] != a.Method || line["path"] != a.Path || line["request_id"] != a.RequestID {
			t.Errorf("%v is logged as %v", a, line)
		}
	}
	long := "/" + strings.Repeat("é", 200)
	l.decided(revoked, extauthz.Asked{Method: "BREW", Path: long})
	if line := l.lines(t)[0]; line["method"] != "_OTHER" || line["path"] != long[:255]+"…" {
		t.Errorf("%v", line)
	}
}
