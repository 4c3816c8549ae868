package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestANamespaceIsExportedImportedAndErased(t *testing.T) {
	dir := t.TempDir()
	store := "--store=sqlite:" + filepath.Join(dir, "memory.db")
	sallyport := func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		var out, errs bytes.Buffer
		if got := run(args, &out, &errs); got != want {
			t.Fatalf("%v: exit status %d, want %d\n%s%s", args, got, want, out.String(), errs.String())
		}
		return out.String(), errs.String()
	}
	// What a server of the Memory API lists: predicates, and histories.
	listed := filepath.Join(dir, "listed.json")
	err := os.WriteFile(listed, []byte(`[{"predicate":"pet","cardinality":"single","value_type":"string","description":"d"},{"predicate":"name","cardinality":"single","value_type":"string","description":"d"}]
null
[{"id":"m-1","kind":"fact","subject":"user","predicate":"pet","value":"cat","confidence":1,"source":"user_stated","observed_at":"2024-01-01T00:00:00Z"},
 {"id":"m-2","kind":"fact","subject":"user","predicate":"pet","value":"dog","confidence":1,"source":"user_stated","observed_at":"2024-02-01T00:00:00Z"}]
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if out, _ := sallyport(0, "memory", "import", store, "--namespace=agents:old", listed); !strings.Contains(out, "2 events") {
		t.Error(out)
	}
	first, _ := sallyport(0, "memory", "export", store, "--namespace=agents:old")
	if strings.Count(first, "\n") != 4 || !strings.Contains(first, "dog") {
		t.Errorf("exported:\n%s", first)
	}
	moved := filepath.Join(dir, "moved.jsonl")
	if err := os.WriteFile(moved, []byte(first), 0o600); err != nil {
		t.Fatal(err)
	}
	sallyport(0, "memory", "import", store, "--namespace=agents:new", moved)
	if again, _ := sallyport(0, "memory", "export", store, "--namespace=agents:new"); again != first {
		t.Errorf("moved:\n%s\nwas:\n%s", again, first)
	}
	if _, said := sallyport(1, "memory", "import", store, "--namespace=agents:new", moved); !strings.Contains(said, "not empty") {
		t.Error(said)
	}
	if _, said := sallyport(1, "memory", "erase", store, "--namespace=agents:old"); !strings.Contains(said, "2 events") {
		t.Error(said)
	}
	sallyport(0, "memory", "erase", store, "--namespace=agents:old", "--yes")
	if left, _ := sallyport(0, "memory", "export", store, "--namespace=agents:old"); strings.Count(left, "\n") != 1 {
		t.Errorf("left:\n%s", left)
	}
}

func TestAStoreIsAFileOrADatabase(t *testing.T) {
	for _, store := range []string{"memory.db", "sqlite:", "mysql://h/d"} {
		var out, errs bytes.Buffer
		if run([]string{"memory", "export", "--namespace=n", "--store=" + store}, &out, &errs) != 1 || !strings.Contains(errs.String(), "--store") {
			t.Errorf("%s: %s", store, errs.String())
		}
	}
}
