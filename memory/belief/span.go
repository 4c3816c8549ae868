package belief

import (
	"strconv"
	"time"
)

// Span is a stretch of time, To not included. The zero Span is none.
type Span struct{ From, To time.Time }

// IsZero says whether the span is none.
func (s Span) IsZero() bool { return s.From.IsZero() && s.To.IsZero() }

// Contains says whether t lies in the span.
func (s Span) Contains(t time.Time) bool { return !t.Before(s.From) && t.Before(s.To) }

// NamedSpan finds the first stretch of time that a question names ("yesterday", "two weeks ago", "last saturday", "in
// march"), seen from now, and returns the words without those that name it. Days and weeks are those of UTC; a week
// begins on Monday.
func NamedSpan(words []string, now time.Time) (Span, []string) {
	now = now.UTC()
	for i := range words {
		if span, used := spanAt(words[i:], now); used > 0 {
			rest := append(append([]string{}, words[:i]...), words[i+used:]...)
			return span, rest
		}
	}
	return Span{}, words
}

// spanAt reads a span at the beginning of words and says how many of them it took.
func spanAt(words []string, now time.Time) (Span, int) {
	today := day(now)
	switch words[0] {
	case "today":
		return days(today, 1), 1
	case "yesterday":
		return days(today.AddDate(0, 0, -1), 1), 1
	}
	if len(words) < 2 {
		return Span{}, 0
	}
	switch words[0] {
	case "last":
		return taking(2, lastSpan(words[1], today))
	case "this":
		return taking(2, thisSpan(words[1], today))
	case "in":
		return taking(2, monthNamed(words[1], today))
	}
	if n, ok := count(words[0]); ok && len(words) > 2 && words[2] == "ago" {
		return taking(3, ago(n, words[1], today))
	}
	return Span{}, 0
}

func taking(n int, s Span) (Span, int) {
	if s.IsZero() {
		return s, 0
	}
	return s, n
}

func day(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
}

func days(from time.Time, n int) Span { return Span{from, from.AddDate(0, 0, n)} }

func week(t time.Time) Span {
	const perWeek = 7
	sinceMonday := (int(t.Weekday()) + perWeek - 1) % perWeek
	return days(t.AddDate(0, 0, -sinceMonday), perWeek)
}

func month(t time.Time) Span {
	first := time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
	return Span{first, first.AddDate(0, 1, 0)}
}

func year(y int) Span {
	return Span{time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(y+1, 1, 1, 0, 0, 0, 0, time.UTC)}
}

func lastSpan(unit string, today time.Time) Span {
	switch unit {
	case "week":
		return week(today.AddDate(0, 0, -7))
	case "month":
		return month(month(today).From.AddDate(0, 0, -1))
	case "year":
		return year(today.Year() - 1)
	case "night":
		return days(today.AddDate(0, 0, -1), 1)
	}
	for back := 1; back <= 7; back++ {
		d := today.AddDate(0, 0, -back)
		if lower(d.Weekday().String()) == unit {
			return days(d, 1)
		}
	}
	return Span{}
}

func thisSpan(unit string, today time.Time) Span {
	switch unit {
	case "week":
		return week(today)
	case "month":
		return month(today)
	case "year":
		return year(today.Year())
	case "morning", "afternoon", "evening":
		return days(today, 1)
	}
	return Span{}
}

// monthNamed is the latest month of that name that has begun.
func monthNamed(name string, today time.Time) Span {
	for m := time.January; m <= time.December; m++ {
		if lower(m.String()) != name {
			continue
		}
		y := today.Year()
		if m > today.Month() {
			y--
		}
		return month(time.Date(y, m, 1, 0, 0, 0, 0, time.UTC))
	}
	return Span{}
}

func ago(n int, unit string, today time.Time) Span {
	switch unit {
	case "day", "days":
		return days(today.AddDate(0, 0, -n), 1)
	case "week", "weeks":
		return week(today.AddDate(0, 0, -7*n))
	case "month", "months":
		return month(month(today).From.AddDate(0, -n, 0))
	case "year", "years":
		return year(today.Year() - n)
	}
	return Span{}
}

var numberWords = []string{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"}

func count(word string) (int, bool) {
	if word == "a" || word == "an" {
		return 1, true
	}
	for n, w := range numberWords {
		if w == word {
			return n, true
		}
	}
	const farBack = 10_000 // a larger number is not meant as a count of days
	n, err := strconv.Atoi(word)
	return n, err == nil && n >= 0 && n <= farBack
}

// lower is for the ASCII names of days and months.
func lower(s string) string { return string(s[0]|0x20) + s[1:] }
