package key_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"strings"
	"testing"
)

// BenchmarkVerify measures a good key that is not remembered: its signature, which BenchmarkSignature measures alone, and the
// rest.
func BenchmarkVerify(b *testing.B) {
	w := newWorld(b)
	text := w.sign(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.verifier.Verify(b.Context(), text); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSignature is the part of BenchmarkVerify that is Ed25519.
func BenchmarkSignature(b *testing.B) {
	w := newWorld(b)
	text := w.sign(b)
	end := strings.LastIndexByte(text, '.')
	signature, err := base64.RawURLEncoding.DecodeString(text[end+1:])
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if !ed25519.Verify(w.store.keys[0].Public, []byte(text[:end]), signature) {
			b.Fatal("not signed")
		}
	}
}
