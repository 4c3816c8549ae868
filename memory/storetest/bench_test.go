package storetest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"sallyport/memory"
	"sallyport/memory/sqlitestore"
)

// filled is a service whose namespace holds n beliefs, ten of each pair.
func filled(b *testing.B, n int) (*memory.Service, memory.Caller) {
	b.Helper()
	st, err := sqlitestore.Open(context.Background(), filepath.Join(b.TempDir(), "m.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = st.Close() })
	s := memory.NewService(st, memory.Options{})
	c := memory.Caller{Namespace: "bench"}
	for i := range n {
		if i%2 == 0 {
			remember(b, s, c, "user", "project_constraint", fmt.Sprintf("constraint number%d of group%d", i, i%97))
			continue
		}
		remember(b, s, c, fmt.Sprintf("subject%d", i/10), "uses_technology", fmt.Sprintf("tool number%d of group%d", i, i%97))
	}
	return s, c
}

func remember(b *testing.B, s *memory.Service, c memory.Caller, subject, predicate, value string) {
	raw, err := json.Marshal(value)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := s.Remember(context.Background(), c, memory.RememberArgs{Subject: &subject, Predicate: &predicate, Value: raw}); err != nil {
		b.Fatal(err)
	}
}

func recall(b *testing.B, s *memory.Service, c memory.Caller, args memory.RecallArgs) {
	if _, err := s.Recall(context.Background(), c, args); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkSizes(b *testing.B) {
	for _, n := range []int{100, 5000} {
		s, c := filled(b, n)
		b.Run(fmt.Sprintf("%d/remember", n), func(b *testing.B) {
			for i := range b.N {
				remember(b, s, c, fmt.Sprintf("subject%d", i%(n/10)), "uses_technology", fmt.Sprintf("another %d of %d", i, b.N))
			}
		})
		b.Run(fmt.Sprintf("%d/exact", n), func(b *testing.B) {
			for i := range b.N {
				recall(b, s, c, memory.RecallArgs{Subject: fmt.Sprintf("subject%d", i%(n/10)), Predicate: "uses_technology"})
			}
		})
		b.Run(fmt.Sprintf("%d/rare words", n), func(b *testing.B) {
			for i := range b.N {
				recall(b, s, c, memory.RecallArgs{Query: fmt.Sprintf("which tool is number%d", i%n)})
			}
		})
		b.Run(fmt.Sprintf("%d/words of a subject", n), func(b *testing.B) {
			for i := range b.N {
				recall(b, s, c, memory.RecallArgs{Subject: "user", Query: fmt.Sprintf("group%d", i%97)})
			}
		})
		b.Run(fmt.Sprintf("%d/remember of a large subject", n), func(b *testing.B) {
			for i := range b.N {
				remember(b, s, c, "user", "uses_technology", fmt.Sprintf("constraint group%d of %d", i, b.N))
			}
		})
		b.Run(fmt.Sprintf("%d/group words", n), func(b *testing.B) {
			for i := range b.N {
				recall(b, s, c, memory.RecallArgs{Query: fmt.Sprintf("group%d", i%97)})
			}
		})
	}
}
