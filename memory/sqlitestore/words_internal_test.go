package sqlitestore

import (
	"strings"
	"testing"
)

func TestNamespacesShareNoIndexedWord(t *testing.T) {
	seen := map[string]int64{}
	for ns := int64(1); ns < 2000; ns++ {
		p := prefix(ns)
		if other, taken := seen[p]; taken {
			t.Fatalf("%d and %d have the prefix %q", ns, other, p)
		}
		seen[p] = ns
		if strings.Count(p, "q") != 1 || !strings.HasSuffix(p, "q") {
			t.Fatalf("the prefix %q does not end where its only mark stands", p)
		}
		if strings.ContainsAny(p, "aeiouy") {
			t.Fatalf("the prefix %q has a vowel, which would change how words are stemmed", p)
		}
	}
}
