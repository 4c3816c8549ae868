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
	acknowledged := 0
	for range *kills {
		acknowledged = killed(t, address, acknowledged+1)
		between()
		store, err := openAt(address)
		if err != nil {
			t.Fatal(err)
		}
		acknowledged = whole(t, store, acknowledged)
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d writes acknowledged, %d kills", acknowledged, *kills)
}

// killed lets a process write and kills it after some writes; it returns the last that was acknowledged.
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
	return last
}

// whole checks that everything up to a number is there, at most one more, and nothing in part. It returns how much is.
func whole(t *testing.T, store memory.Store, acknowledged int) (there int) {
	t.Helper()
	err := store.Read(context.Background(), writer.Namespace, func(r memory.Reader) error {
		count := func(subject, predicate string) int {
			events, err := r.Events(memory.EventFilter{Subject: subject, Predicates: []string{predicate}})
			if err != nil {
				t.Fatal(err)
			}
			return len(events)
		}
		there = count("user", belief.Note)
		turns, err := r.Turns("a", 0)
		if err != nil {
			return err
		}
		found, err := r.Matches([]string{"number"}, memory.EventFilter{})
		if err != nil {
			return err
		}
		tools, names := count("project", "uses_technology"), count("project", "project_name")
		if there < acknowledged || there > acknowledged+1 || tools != there || names != there || len(found) != there {
			t.Errorf("%d were acknowledged; there are %d texts, %d tools, %d names, %d found by words", acknowledged, there, tools, names, len(found))
		}
		if len(turns) < acknowledged || len(turns) > there || len(turns) > 0 && turns[0].Seq != int64(len(turns)) {
			t.Errorf("%d were acknowledged; there are %d turns", acknowledged, len(turns))
		}
		return folded(t, r)
	})
	if err != nil {
		t.Fatal(err)
	}
	return there
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
