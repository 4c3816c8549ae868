package agent

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Tokens estimates how many tokens a text is: a quarter of its bytes, rounded up.
func Tokens(text string) int {
	const bytesPerToken = 4
	return (len(text) + bytesPerToken - 1) / bytesPerToken
}

const (
	openingBytes   = 400 // of a text that is stored apart
	summaryBytes   = 200 // of an output that was given no summary
	briefArgsBytes = 300 // of the arguments of an action, in a briefing
)

// TooLong says whether a text goes to the outputs instead of standing where it was given. A negative threshold keeps
// every text in its place.
func TooLong(text string, threshold int) bool { return threshold >= 0 && Tokens(text) > threshold }

// Opening is what stands in the place of a text that was stored as the output ref.
func Opening(text, ref string) string {
	return cut(text, openingBytes) + fmt.Sprintf("\n[the whole text, %d tokens, is output %s: fetch_output returns it]", Tokens(text), ref)
}

// Summarize is the summary of an output that was given none.
func Summarize(content string) string { return cut(content, summaryBytes) }

// oneLine puts a single space in the place of every run of spaces and line breaks.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// cut returns the beginning of a text, at most n bytes and never half a character, with three dots if there is more.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "..."
}
