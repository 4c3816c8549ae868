package agent

import (
	"fmt"
	"unicode/utf8"
)

// Tokens estimates how many tokens a text is: a quarter of its bytes, rounded up.
func Tokens(text string) int {
	const bytesPerToken = 4
	return (len(text) + bytesPerToken - 1) / bytesPerToken
}

const (
	openingRunes = 400 // of a text that is stored apart
	summaryRunes = 200 // of an output that was given no summary
)

// TooLong says whether a text goes to the outputs instead of standing where it was given. A negative threshold keeps
// every text in its place.
func TooLong(text string, threshold int) bool { return threshold >= 0 && Tokens(text) > threshold }

// Opening is what stands in the place of a text that was stored as the output ref.
func Opening(text, ref string) string {
	return cut(text, openingRunes) + fmt.Sprintf("\n[the whole text, %d tokens, is output %s: fetch_output returns it]", Tokens(text), ref)
}

// Summarize is the summary of an output that was given none.
func Summarize(content string) string { return cut(content, summaryRunes) }

// cut returns the first n characters, with three dots if there are more.
func cut(text string, n int) string {
	end := 0
	for range n {
		if end >= len(text) {
			return text
		}
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	if end >= len(text) {
		return text
	}
	return text[:end] + "..."
}
