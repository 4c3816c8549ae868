package belief

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// fold takes the accents off Latin letters and writes Greek ones in their first form.
func fold(word string) string {
	return strings.Map(func(r rune) rune {
		const ascii, firstMark, lastMark = 0x80, 0x0300, 0x036f
		switch {
		case r < ascii:
			return r
		case r >= firstMark && r <= lastMark:
			return -1
		case unicode.Is(unicode.Greek, r), r == 'µ':
			return unicode.ToLower(unicode.ToUpper(r))
		case r == 'ſ', r == 'ẛ':
			return 's'
		case unicode.Is(unicode.Latin, r):
			if base := norm.NFD.String(string(r))[0]; base < ascii {
				return rune(base)
			}
		}
		return r
	}, word)
}

// stem takes the endings off an English word by Porter's algorithm. Words of less than three or more than 63 bytes stay as
// they are.
func stem(word string) string {
	const shortest, longest = 3, 63
	if len(word) < shortest || len(word) > longest {
		return word
	}
	w := plural(word)
	w = past(w)
	if strings.HasSuffix(w, "y") && hasVowel(w[:len(w)-1]) {
		w = w[:len(w)-1] + "i"
	}
	w = replaceEnding(w, stepTwo, measureAbove0)
	w = replaceEnding(w, stepThree, measureAbove0)
	w = dropEnding(w)
	if rest, ok := strings.CutSuffix(w, "e"); ok && (measureAbove1(rest) || measureIs1(rest) && !endsShort(rest)) {
		w = rest
	}
	if strings.HasSuffix(w, "ll") && measureAbove1(w[:len(w)-1]) {
		w = w[:len(w)-1]
	}
	return w
}

func isVowel(c byte, afterConsonant bool) bool {
	switch c {
	case 'a', 'e', 'i', 'o', 'u':
		return true
	case 'y':
		return afterConsonant
	}
	return false
}

// sequences counts how often a run of vowels is followed by a consonant.
func sequences(w string) int {
	n := 0
	consonant, vowels := false, false
	for i := range len(w) {
		consonant = !isVowel(w[i], consonant)
		switch {
		case !consonant:
			vowels = true
		case vowels:
			n++
			vowels = false
		}
	}
	return n
}

func measureAbove0(w string) bool { return sequences(w) > 0 }
func measureAbove1(w string) bool { return sequences(w) > 1 }
func measureIs1(w string) bool    { return sequences(w) == 1 }

func hasVowel(w string) bool {
	for i := range len(w) {
		if isVowel(w[i], i > 0) {
			return true
		}
	}
	return false
}

// endsShort says whether a word ends in consonant, vowel, consonant, and the last is none of w, x, y.
func endsShort(w string) bool {
	if w == "" || strings.IndexByte("wxy", w[len(w)-1]) >= 0 {
		return false
	}
	var kinds []bool
	consonant := false
	for i := range len(w) {
		consonant = !isVowel(w[i], consonant)
		kinds = append(kinds, consonant)
	}
	n := len(kinds)
	return n >= 3 && kinds[n-3] && !kinds[n-2] && kinds[n-1]
}

func plural(w string) string {
	switch {
	case !strings.HasSuffix(w, "s"):
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "ies"):
		return w[:len(w)-2]
	case !strings.HasSuffix(w, "ss"):
		return w[:len(w)-1]
	}
	return w
}

func past(w string) string {
	if rest, ok := strings.CutSuffix(w, "eed"); ok && rest != "" {
		if measureAbove0(rest) {
			return w[:len(w)-1]
		}
		return w
	}
	rest, ok := strings.CutSuffix(w, "ed")
	if !ok {
		rest, ok = strings.CutSuffix(w, "ing")
	}
	if !ok || !hasVowel(rest) {
		return w
	}
	switch n := len(rest); {
	case strings.HasSuffix(rest, "at"), strings.HasSuffix(rest, "bl"), strings.HasSuffix(rest, "iz"):
		return rest + "e"
	case n > 1 && rest[n-1] == rest[n-2] && !isVowel(rest[n-1], false) && strings.IndexByte("lsz", rest[n-1]) < 0:
		return rest[:n-1]
	case measureIs1(rest) && endsShort(rest):
		return rest + "e"
	}
	return rest
}

// The endings of a step, an ending before those that it ends in. In the first two each is followed by what takes its place.
var (
	stepTwo = []string{
		"ational", "ate", "tional", "tion", "enci", "ence", "anci", "ance", "izer", "ize", "logi", "log", "bli", "ble",
		"alli", "al", "entli", "ent", "eli", "e", "ousli", "ous", "ization", "ize", "ation", "ate", "ator", "ate",
		"alism", "al", "iveness", "ive", "fulness", "ful", "ousness", "ous", "aliti", "al", "iviti", "ive", "biliti", "ble",
	}
	stepThree = []string{
		"icate", "ic", "ative", "", "alize", "al", "iciti", "ic", "ical", "ic", "ful", "", "ness", "",
	}
	stepFour = []string{
		"al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "sion", "tion", "ou", "ism", "ate", "iti", "ous", "ive", "ize",
	}
)

func replaceEnding(w string, endings []string, when func(string) bool) string {
	for i := 0; i < len(endings); i += 2 {
		if rest, ok := strings.CutSuffix(w, endings[i]); ok && rest != "" {
			if when(rest) {
				return rest + endings[i+1]
			}
			return w
		}
	}
	return w
}

func dropEnding(w string) string {
	for _, e := range stepFour {
		rest, ok := strings.CutSuffix(w, e)
		if !ok || rest == "" {
			continue
		}
		if e == "sion" || e == "tion" {
			rest += e[:1]
		}
		if measureAbove1(rest) {
			return rest
		}
		return w
	}
	return w
}
