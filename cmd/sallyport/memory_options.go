package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"sallyport/memory"
	"sallyport/memory/embed"
	"sallyport/memory/extract"
	"sallyport/memory/limits"
)

// memoryFlags say what a memory offers, wherever it is.
type memoryFlags struct {
	surfaceFlags
	limitFlags
	embedFlags
	extractFlags
}

// options returns what the flags say, but for the vocabulary.
func (f memoryFlags) options() (memory.Options, error) {
	l := limits.Limits{Records: f.MaxRecords, Bytes: f.MaxBytes, RequestsPerSecond: f.MaxRequestsPerSecond}
	if err := l.Validate(); err != nil {
		return memory.Options{}, fmt.Errorf("--max-records, --max-bytes, --max-requests-per-second: %w", err)
	}
	meaning, err := f.meaning()
	if err != nil {
		return memory.Options{}, err
	}
	extraction, err := f.extraction()
	if err != nil {
		return memory.Options{}, err
	}
	return memory.Options{Limits: l, Meaning: meaning, Extraction: extraction}, nil
}

// limitFlags bound one namespace; 0 is no limit.
type limitFlags struct {
	MaxRecords           int64   `help:"How many records one namespace may hold: statements, predicates, agents and all of theirs. 0 for no limit." default:"0"`
	MaxBytes             int64   `help:"How many bytes of text one namespace may hold. 0 for no limit." default:"0"`
	MaxRequestsPerSecond float64 `help:"How many requests a second one namespace may make to this process. 0 for no limit." default:"0"`
}

// embedFlags say which service finds out what texts mean.
type embedFlags struct {
	EmbedURL        string        `help:"Search by meaning, too: a service of embeddings, as OpenAI's http://HOST/v1, or http://HOST/embed that takes {text}." placeholder:"URL"`
	EmbedModel      string        `help:"The model that it is asked for. With another, everything is embedded anew." placeholder:"NAME"`
	EmbedKeyFile    string        `help:"File with the key that it wants; or put the key into SALLYPORT_EMBED_KEY." placeholder:"FILE"`
	EmbedSimilarity float64       `help:"How alike, from 0 to 1, a belief and a question have to be; which number is good depends on the model." default:"0.4"`
	EmbedTimeout    time.Duration `help:"How long a question may take to be embedded; then its words alone are searched." default:"2s"`
}

// meaning returns nil where no service is named.
func (f embedFlags) meaning() (*memory.Meaning, error) {
	if f.EmbedURL == "" {
		if f.EmbedModel != "" || f.EmbedKeyFile != "" {
			return nil, errors.New("--embed-model and --embed-key-file are for a service: name it with --embed-url")
		}
		return nil, nil //nolint:nilnil // no search by meaning is a valid choice
	}
	const shortest, longest = 10 * time.Millisecond, 20 * time.Second
	switch {
	case !(f.EmbedSimilarity >= 0 && f.EmbedSimilarity <= 1):
		return nil, fmt.Errorf("--embed-similarity %g: give a number from 0 to 1", f.EmbedSimilarity)
	case f.EmbedTimeout < shortest || f.EmbedTimeout > longest:
		return nil, fmt.Errorf("--embed-timeout %s: give between %s and %s", f.EmbedTimeout, shortest, longest)
	}
	key, err := secret(f.EmbedKeyFile, "SALLYPORT_EMBED_KEY")
	if err != nil {
		return nil, fmt.Errorf("--embed-key-file: %w", err)
	}
	const patience = 30 * time.Second // with statements, which nobody waits for
	client, err := embed.New(embed.Options{URL: f.EmbedURL, Model: f.EmbedModel, Key: key, Timeout: patience})
	if err != nil {
		return nil, fmt.Errorf("--embed-url, --embed-model: %w", err)
	}
	return &memory.Meaning{Embedder: client, Similarity: f.EmbedSimilarity, Timeout: f.EmbedTimeout}, nil
}

// extractFlags say which model reads statements out of texts.
type extractFlags struct {
	ExtractURL     string        `help:"Read statements out of texts that come without any: a model behind OpenAI's chat protocol, as http://HOST/v1." placeholder:"URL"`
	ExtractModel   string        `help:"The model that it is asked for." placeholder:"NAME"`
	ExtractKeyFile string        `help:"File with the key that it wants; or put the key into SALLYPORT_EXTRACT_KEY." placeholder:"FILE"`
	ExtractTimeout time.Duration `help:"How long a write may wait for it; then the text is kept as it is." default:"10s"`
}

// extraction returns nil where no model is named.
func (f extractFlags) extraction() (*memory.Extraction, error) {
	if f.ExtractURL == "" {
		if f.ExtractModel != "" || f.ExtractKeyFile != "" {
			return nil, errors.New("--extract-model and --extract-key-file are for a service: name it with --extract-url")
		}
		return nil, nil //nolint:nilnil // to keep texts as they are is a valid choice
	}
	const shortest, longest = 100 * time.Millisecond, 25 * time.Second // a call to the memory takes 30 at most
	if f.ExtractTimeout < shortest || f.ExtractTimeout > longest {
		return nil, fmt.Errorf("--extract-timeout %s: give between %s and %s", f.ExtractTimeout, shortest, longest)
	}
	key, err := secret(f.ExtractKeyFile, "SALLYPORT_EXTRACT_KEY")
	if err != nil {
		return nil, fmt.Errorf("--extract-key-file: %w", err)
	}
	client, err := extract.New(extract.Options{URL: f.ExtractURL, Model: f.ExtractModel, Key: key, Timeout: f.ExtractTimeout})
	if err != nil {
		return nil, fmt.Errorf("--extract-url, --extract-model: %w", err)
	}
	return &memory.Extraction{Extractor: client, Timeout: f.ExtractTimeout}, nil
}

// secret reads a key from a file, or from a variable if no file is named. It is no flag: the command line and the log of
// the settings would show it.
func secret(file, variable string) (string, error) {
	if file == "" {
		return strings.TrimSpace(os.Getenv(variable)), nil
	}
	text, err := os.ReadFile(file) //nolint:gosec // the operator names the file
	if err != nil {
		return "", err
	}
	key := strings.TrimSpace(string(text))
	if key == "" {
		return "", fmt.Errorf("%s is empty", file)
	}
	return key, nil
}
