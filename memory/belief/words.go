package belief

import (
	"strings"
	"unicode"
)

// MaxQueryWords bounds how many words of a question are searched for; the first ones count.
const MaxQueryWords = 64

// maxWordRunes bounds a word: what is longer (a key, an encoded file) is known by its beginning.
const maxWordRunes = 64

// maxStems bounds by how many different words a belief is found: what comes later in a longer text is not searched.
const maxStems = 4096

// Stems returns what the belief can be found by.
func (b Belief) Stems() []string {
	return Stems(Words(b.Subject + " " + spoken(b.Predicate) + " " + b.Value.String()))
}

// Stems returns what is the same in all forms of a word, for each word, and each once.
func Stems(words []string) []string {
	var out []string
	seen := make(map[string]bool, len(words))
	for _, w := range words {
		s := stem(fold(w))
		if s == "" || seen[s] { // a mark alone leaves nothing
			continue
		}
		seen[s] = true
		if out = append(out, s); len(out) == maxStems {
			break
		}
	}
	return out
}

// Words splits a text into lower-case words: runs of letters, digits and the marks upon them. Scripts that are written
// without spaces have no words to find, so each two neighbouring characters of them count as one.
func Words(text string) []string {
	var out []string
	var run []rune
	flush := func() {
		out = append(out, pieces(run)...)
		run = run[:0]
	}
	for _, r := range strings.ToLower(text) {
		if unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) {
			run = append(run, r)
			continue
		}
		flush()
	}
	flush()
	return out
}

// pieces splits a run of letters and digits where a script without spaces begins or ends.
func pieces(run []rune) []string {
	var out []string
	for len(run) > 0 {
		n := 1
		for n < len(run) && unspaced(run[n]) == unspaced(run[0]) {
			n++
		}
		if unspaced(run[0]) {
			out = append(out, pairs(run[:n])...)
		} else {
			out = append(out, string(run[:min(n, maxWordRunes)]))
		}
		run = run[n:]
	}
	return out
}

func pairs(run []rune) []string {
	if len(run) == 1 {
		return []string{string(run)}
	}
	out := make([]string, 0, len(run)-1)
	for i := range len(run) - 1 {
		out = append(out, string(run[i:i+2]))
	}
	return out
}

func unspaced(r rune) bool {
	return r > unicode.MaxLatin1 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) ||
		r == 'ー' // belongs to the kana, whose script Unicode calls common
}

// QueryWords returns the words of a question that say what it is about, each once and at most MaxQueryWords. A question
// of nothing but small words is about those.
func QueryWords(words []string) []string {
	if out := distinct(words, func(w string) bool { return !smallWords[w] }); len(out) > 0 {
		return out
	}
	return distinct(words, func(string) bool { return true })
}

func distinct(words []string, keep func(string) bool) []string {
	var out []string
	seen := map[string]bool{}
	for _, w := range words {
		if seen[w] || !keep(w) {
			continue
		}
		seen[w] = true
		if out = append(out, w); len(out) == MaxQueryWords {
			break
		}
	}
	return out
}

var smallWords = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`
		a an the this that these those some any each every all both no not nor
		i me my mine myself we us our ours you your yours he him his she her hers it its they them their theirs
		am is are was were be been being do does did doing done have has had having
		can could may might must shall should will would
		and or but if then than so as of at by for from in into on onto off out over to under up with about
		what which who whom whose when where why how there here
		s t d m ll re ve don doesn didn isn aren wasn weren won wouldn shouldn couldn hasn haven hadn
		please tell know just also very too`) {
		m[w] = true
	}
	return m
}()
