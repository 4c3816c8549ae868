package storetest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sallyport/internal/pgtest"
	"sallyport/memory"
	"sallyport/memory/belief"
	"sallyport/memory/pgstore"
	"sallyport/memory/sqlitestore"
)

var kills = flag.Int("kills", 6, "how often a process is killed while it writes")

// The test runs itself as the process that is killed.
const (
	storeVariable = "SALLYPORT_TEST_WRITE_TO"
	fromVariable  = "SALLYPORT_TEST_WRITE_FROM"
)

func TestMain(m *testing.M) {
	if address := os.Getenv(storeVariable); address != "" {
		if err := writeForEver(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func openAt(address string) (memory.Store, error) {
	if path, ok := strings.CutPrefix(address, "sqlite:"); ok {
		return sqlitestore.Open(context.Background(), path)
	}
	return pgstore.Open(context.Background(), address)
}

var writer = memory.Caller{Namespace: "kills:run"}

// writeForEver writes texts with their statements, and turns, and tells the number of each when both are acknowledged.
func writeForEver(address string) error {
	ctx := context.Background()
	store, err := openAt(address)
	if err != nil {
		return err
	}
	s := memory.NewService(store, memory.Options{})
	from, err := strconv.Atoi(os.Getenv(fromVariable))
	if err != nil {
		return err
	}
	if _, err := s.Release(ctx, writer, memory.AgentArgs{AgentID: "a"}); err != nil {
		return err
	}
	if _, err := s.Resume(ctx, writer, memory.ResumeArgs{AgentArgs: memory.AgentArgs{AgentID: "a"}}); err != nil {
		return err
	}
	for i := from; ; i++ {
		value, err := json.Marshal(fmt.Sprintf("tool%d", i))
		if err != nil {
			return err
		}
		text := fmt.Sprintf("Number %d uses tool%d.", i, i)
		_, err = s.Remember(ctx, writer, memory.RememberArgs{Text: &text, Statements: &[]memory.Proposal{
			{Subject: "project", Predicate: "uses_technology", Value: value, Evidence: "uses"},
			{Subject: "project", Predicate: "project_name", Value: value, Evidence: "uses"},
		}})
		if err != nil {
			return err
		}
		_, err = s.RecordTurn(ctx, writer, memory.TurnArgs{AgentArgs: memory.AgentArgs{AgentID: "a"}, Role: "user", Content: text})
		if err != nil {
			return err
		}
		fmt.Println(i)
	}
}

func TestWhatWasAcknowledgedSurvivesKills(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) {
		surviveKills(t, "sqlite:"+filepath.Join(t.TempDir(), "memory.db"), func() {})
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		server := pgtest.Start(t, "fsync=on")
		n := 0
		surviveKills(t, server.Database(t), func() {
			if n++; n%3 == 0 { // and now and then the database itself
				server.Kill(t)
			}
		})
	})
}

func surviveKills(t *testing.T, address string, between func()) {
	var had written
	for range *kills {
		acknowledged := killed(t, address, had.texts+1)
		between()
		store, err := openAt(address)
		if err != nil {
			t.Fatal(err)
		}
		had = whole(t, store, had, acknowledged)
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d texts and %d turns, %d kills", had.texts, had.turns, *kills)
}

// written is how much there is. A process that is killed between a text and its turn leaves one text more.
type written struct{ texts, turns int }

// killed lets a process write and kills it after some writes; it returns how many were acknowledged.
func killed(t *testing.T, address string, from int) int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), storeVariable+"="+address, fromVariable+"="+strconv.Itoa(from))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	last, enough := from-1, from+rand.IntN(30)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if last, err = strconv.Atoi(lines.Text()); err != nil {
			t.Fatal(err)
		}
		if last == enough {
			_ = cmd.Process.Kill() // what it still said is read to its end
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Exited() {
		t.Fatalf("it was not killed: %v", err)
	}
	return last - from + 1
}

// whole checks that what there was and what was acknowledged since is there, at most one more, and nothing in part. It
// returns what is.
func whole(t *testing.T, store memory.Store, had written, acknowledged int) (has written) {
	t.Helper()
	err := store.Read(context.Background(), writer.Namespace, func(r memory.Reader) error {
		count := func(subject, predicate string) int {
			events, err := r.Events(memory.EventFilter{Subject: subject, Predicates: []string{predicate}})
			if err != nil {
				t.Fatal(err)
			}
			return len(events)
		}
		has.texts = count("user", belief.Note)
		turns, err := r.Turns("a", 0)
		if err != nil {
			return err
		}
		has.turns = len(turns)
		found, err := r.Beliefs(memory.Filter{Search: &memory.Search{Words: []string{"number"}, Select: true}})
		if err != nil {
			return err
		}
		tools, names := count("project", "uses_technology"), count("project", "project_name")
		if tools != has.texts || names != has.texts || len(found) != has.texts {
			t.Errorf("of %d texts there are %d tools, %d names, and %d are found by words", has.texts, tools, names, len(found))
		}
		texts, more := has.texts-had.texts-acknowledged, has.turns-had.turns-acknowledged
		if texts < 0 || texts > 1 || more < 0 || more > texts {
			t.Errorf("%d were acknowledged since %+v; there are %+v", acknowledged, had, has)
		}
		if has.turns > 0 && turns[0].Seq != int64(has.turns) {
			t.Errorf("the last of %d turns is turn %d", has.turns, turns[0].Seq)
		}
		return folded(t, r)
	})
	if err != nil {
		t.Fatal(err)
	}
	return has
}

// folded checks that the beliefs that are kept are what the events amount to.
func folded(t *testing.T, r memory.Reader) error {
	t.Helper()
	vocabulary := belief.Closed()
	rules := func(name string) belief.Predicate { p, _ := vocabulary.Starter(name); return p }
	for _, subject := range []string{"user", "project"} {
		events, err := r.Events(memory.EventFilter{Subject: subject})
		if err != nil {
			return err
		}
		kept, err := r.Beliefs(memory.Filter{Subject: subject})
		if err != nil {
			return err
		}
		byID := map[string]belief.Belief{}
		for _, b := range kept {
			byID[b.EventID] = b
		}
		all := belief.Fold(rules, events).All()
		if len(all) != len(kept) {
			t.Errorf("%s: %d beliefs are kept, and the events amount to %d", subject, len(kept), len(all))
		}
		for _, b := range all {
			if fmt.Sprintf("%+v", byID[b.EventID]) != fmt.Sprintf("%+v", b) {
				t.Errorf("kept %+v\nwant %+v", byID[b.EventID], b)
			}
		}
	}
	return nil
}
