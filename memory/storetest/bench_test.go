package storetest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/pgtest"
	"sallyport/memory"
	"sallyport/memory/pgstore"
	"sallyport/memory/sqlitestore"
)

var caller = memory.Caller{Namespace: "bench"}

// filled is a service whose namespace holds n beliefs: half of them of one subject, the others ten of each; "even" in half
// of them, "group17" in every 97th, "number123" in one.
func filled(b *testing.B, store memory.Store, n int) *memory.Service {
	b.Helper()
	b.Cleanup(func() { _ = store.Close() })
	var lines strings.Builder
	for i := range n {
		subject, value := "user", fmt.Sprintf("even number%d of group%d", i, i%97)
		if i%2 == 1 {
			subject, value = fmt.Sprintf("subject%d", i/20), fmt.Sprintf("odd number%d of group%d", i, i%97)
		}
		at := time.Date(2024, 1, 1, 0, 0, i, 0, time.UTC).Format(time.RFC3339)
		fmt.Fprintf(&lines, `{"event":{"id":"m-%024d","kind":"fact","subject":%q,"predicate":"uses_technology","value":%q,"confidence":1,"source":"user_stated","observed_at":%q}}`+"\n",
			i, subject, value, at)
	}
	if _, err := memory.Import(context.Background(), store, caller.Namespace, strings.NewReader(lines.String())); err != nil {
		b.Fatal(err)
	}
	return memory.NewService(store, memory.Options{})
}

// BenchmarkSizes shows that no call costs much more the more there is: compare the two sizes.
func BenchmarkSizes(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		lite, err := sqlitestore.Open(context.Background(), filepath.Join(b.TempDir(), "m.db"))
		if err != nil {
			b.Fatal(err)
		}
		sized(b, fmt.Sprintf("SQLite/%d", n), filled(b, lite, n), n)
		postgres, err := pgstore.Open(context.Background(), pgtest.Start(b).Database(b))
		if err != nil {
			b.Fatal(err)
		}
		sized(b, fmt.Sprintf("PostgreSQL/%d", n), filled(b, postgres, n), n)
	}
}

func sized(b *testing.B, name string, s *memory.Service, n int) {
	recall := func(what string, args func(i int) memory.RecallArgs) {
		b.Run(name+"/"+what, func(b *testing.B) {
			for i := range b.N {
				if _, err := s.Recall(context.Background(), caller, args(i*7919)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	remember := func(what, subject string) {
		b.Run(name+"/"+what, func(b *testing.B) {
			for i := range b.N {
				raw, err := json.Marshal(fmt.Sprintf("%s another %d of %d", what, i, b.N))
				if err != nil {
					b.Fatal(err)
				}
				predicate := "uses_technology"
				if _, err := s.Remember(context.Background(), caller, memory.RememberArgs{Subject: &subject, Predicate: &predicate, Value: raw}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	recall("exact", func(i int) memory.RecallArgs {
		return memory.RecallArgs{Subject: fmt.Sprintf("subject%d", i%(n/20)), Predicate: "uses_technology"}
	})
	recall("a rare word", func(i int) memory.RecallArgs { return memory.RecallArgs{Query: fmt.Sprintf("what is number%d", i%n)} })
	recall("a word of every 97th", func(i int) memory.RecallArgs { return memory.RecallArgs{Query: fmt.Sprintf("group%d", i%97)} })
	recall("a word of half", func(int) memory.RecallArgs { return memory.RecallArgs{Query: "even"} })
	recall("several words", func(i int) memory.RecallArgs {
		return memory.RecallArgs{Query: fmt.Sprintf("even number%d of group%d for user", i%n, i%97)}
	})
	recall("several common words", func(i int) memory.RecallArgs {
		return memory.RecallArgs{Query: fmt.Sprintf("even technology of user in group%d", i%97)}
	})
	recall("words of a small subject", func(i int) memory.RecallArgs {
		return memory.RecallArgs{Subject: fmt.Sprintf("subject%d", i%(n/20)), Query: fmt.Sprintf("group%d", i%97)}
	})
	recall("words of a large subject", func(i int) memory.RecallArgs {
		return memory.RecallArgs{Subject: "user", Query: fmt.Sprintf("group%d", i%97)}
	})
	recall("words of a predicate", func(i int) memory.RecallArgs {
		return memory.RecallArgs{Predicate: "uses_technology", Query: fmt.Sprintf("even group%d", i%97)}
	})
	recall("a span of time", func(int) memory.RecallArgs { return memory.RecallArgs{Query: "even this week", AsOf: ""} })
	remember("remember", "somebody")
	remember("remember of a large subject", "user")
}
