package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTheEmbeddingServiceIsGivenItsKey(t *testing.T) {
	var key string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key = r.Header.Get("Authorization")
		if _, err := w.Write([]byte(`{"values":[1,0]}`)); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("from-the-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SALLYPORT_EMBED_KEY", "from-the-variable")
	for wanted, f := range map[string]embedFlags{
		"Bearer from-the-file":     {EmbedURL: server.URL + "/embed", EmbedKeyFile: file, EmbedTimeout: time.Second},
		"Bearer from-the-variable": {EmbedURL: server.URL + "/embed", EmbedTimeout: time.Second},
	} {
		m, err := f.meaning()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Embedder.Embed(context.Background(), []string{"x"}); err != nil || key != wanted {
			t.Errorf("sent %q, want %q (%v)", key, wanted, err)
		}
	}
}

func TestMemoryFlagsAreChecked(t *testing.T) {
	good := embedFlags{EmbedURL: "http://127.0.0.1:1/v1", EmbedModel: "m", EmbedTimeout: time.Second}
	for flag, spoil := range map[string]func(f *memoryFlags){
		"--max-records":      func(f *memoryFlags) { f.MaxRecords = -1 },
		"--max-bytes":        func(f *memoryFlags) { f.MaxBytes = -1 },
		"--embed-url":        func(f *memoryFlags) { f.EmbedURL = "" },
		"--embed-model":      func(f *memoryFlags) { f.EmbedModel = "" },
		"--embed-similarity": func(f *memoryFlags) { f.EmbedSimilarity = 2 },
		"--embed-timeout":    func(f *memoryFlags) { f.EmbedTimeout = time.Hour },
		"--embed-key-file":   func(f *memoryFlags) { f.EmbedKeyFile = "nowhere" },
		"--extract-url":      func(f *memoryFlags) { f.ExtractURL = "" },
		"--extract-model":    func(f *memoryFlags) { f.ExtractModel = "" },
		"--extract-timeout":  func(f *memoryFlags) { f.ExtractTimeout = time.Hour },
		"--extract-key-file": func(f *memoryFlags) { f.ExtractKeyFile = "nowhere" },
	} {
		f := memoryFlags{embedFlags: good, extractFlags: extractFlags{ExtractURL: "http://127.0.0.1:1/v1", ExtractModel: "m", ExtractTimeout: time.Second}}
		if _, err := f.options(); err != nil {
			t.Fatal(err)
		}
		spoil(&f)
		if _, err := f.options(); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
	if o, err := (memoryFlags{}).options(); err != nil || o.Meaning != nil || o.Extraction != nil {
		t.Errorf("without flags: %+v %v", o, err)
	}
}
