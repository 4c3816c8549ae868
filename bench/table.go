package main

import (
	"fmt"
	"io"
	"strings"
)

// table is written as Markdown, to be kept in docs/performance.md.
type table struct {
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(w io.Writer) error {
	lines := []string{row(t.head), strings.Repeat("|---", len(t.head)) + "|"}
	for _, r := range t.rows {
		lines = append(lines, row(r))
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n")+"\n")
	return err
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
func writeGoals(w io.Writer, goals []goal) error {
	t := table{head: []string{"wanted", "", "measured", ""}}
	for _, g := range goals {
		t.add(g.row()...)
	}
	return t.write(w)
}

// conditions says what the machine was like. Without it a figure is worth nothing.
func (m *machine) conditions(w io.Writer, before span, loadBefore string) error {
	t := m.total()
	_, err := fmt.Fprintf(w, "Load average before: %s; neighbours took %.0f %% of the machine before, %.0f %% while it was measured.\n",
		loadBefore, 100*before.neighbours(), 100*t.neighbours())
	if err == nil && t.neighbours() > tooBusy {
		_, err = fmt.Fprintf(w, "\n**INVALID**: neighbours took more than a quarter of the machine. Measure again when it is quiet.\n")
	}
	return err
}
