package main

import (
	"fmt"
	"strings"
)

// table is written as Markdown, to be kept in docs/performance.md.
type table struct {
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(page *strings.Builder) {
	lines := []string{row(t.head), strings.Repeat("|---", len(t.head)) + "|"}
	for _, r := range t.rows {
		lines = append(lines, row(r))
	}
	page.WriteString(strings.Join(lines, "\n") + "\n\n")
}

func row(cells []string) string { return "| " + strings.Join(cells, " | ") + " |" }

// show prints the median, and the lowest and the highest value.
func (s spread) show(format string) string {
	return fmt.Sprintf(format+" ("+format+"–"+format+")", s.median, s.low, s.high)
}

// goal is a figure that was wanted.
type goal struct {
	what     string
	measured spread
	format   string
	atMost   bool // else at least
	bound    float64
}

func (g goal) met() bool {
	if g.atMost {
		return g.measured.median <= g.bound
	}
	return g.measured.median >= g.bound
}

func (g goal) row() []string {
	sign, verdict := "≥", "not met"
	if g.atMost {
		sign = "≤"
	}
	if g.met() {
		verdict = "met"
	}
	return []string{g.what, sign + " " + fmt.Sprintf(g.format, g.bound), g.measured.show(g.format), verdict}
}

// writeGoals prints what was wanted beside what was measured.
func writeGoals(page *strings.Builder, goals []goal) {
	t := table{head: []string{"wanted", "", "measured", ""}}
	for _, g := range goals {
		t.add(g.row()...)
	}
	t.write(page)
}
