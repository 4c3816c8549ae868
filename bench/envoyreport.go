package main

import (
	"fmt"
	"strings"
)

// report is everything, as Markdown.
func (r *envoyRig) report(variants []*variant) string {
	pass, allow := named(variants, namePass), named(variants, nameAllow)
	var page strings.Builder
	r.heading(&page, "make bench-envoy", fmt.Sprintf("Envoy with %d worker threads, %d rounds of %s and %s at each steady rate", r.workers, r.rounds, r.window, r.paced))

	cpu := table{head: []string{"CPU, µs a request", "door", "of always-allow's", "all rounds together", "Envoy", "backend"}}
	speed := table{head: []string{"", "requests/s", "of pass-through", "of always-allow's"}}
	for _, perSecond := range rates {
		speed.head = append(speed.head, fmt.Sprintf("p50 added at %d/s, µs", perSecond))
	}
	for _, v := range variants {
		ofDoor, ratio, together := "–", "–", "–"
		if len(v.seen[cpuAuth]) > 0 {
			ofDoor, ratio, together = v.of(cpuAuth).show("%.1f"), v.ratio(cpuAuth, allow).show("%.2f"), fmt.Sprintf("%.2f", v.together(allow))
		}
		cpu.add(v.name, ofDoor, ratio, together, v.of(cpuEnvoy).show("%.1f"), v.of(cpuBackend).show("%.1f"))
		cells := []string{v.name, v.of(rate).show("%.0f"), v.ratio(rate, pass).show("%.2f"), v.ratio(rate, allow).show("%.2f")}
		for _, perSecond := range rates {
			cells = append(cells, v.minus(atRate(perSecond), pass).show("%.0f"))
		}
		speed.add(cells...)
	}
	if r.opa == "" {
		const notRun = "not run: set OPA_ENVOY to its binary"
		cpu.add(nameOPA, notRun, "", "", "", "")
		speed.add(nameOPA, notRun, "", "", "", "")
	}
	cpu.write(&page)
	speed.write(&page)

	warm, cold, live := named(variants, r.nameWarm()), named(variants, nameCold), named(variants, r.nameLive())
	var goals []goal
	for _, v := range []*variant{warm, live} {
		goals = append(
			goals,
			goal{what: v.name + ": CPU, of always-allow's", measured: v.ratio(cpuAuth, allow), format: "%.2f", atMost: true, bound: 0.50},
			goal{what: v.name + ": requests/s, of always-allow's", measured: v.ratio(rate, allow), format: "%.2f", bound: 1.15},
			goal{what: v.name + ": requests/s, of pass-through", measured: v.ratio(rate, pass), format: "%.2f", bound: 0.46},
		)
		for _, perSecond := range rates {
			goals = append(goals, goal{
				what: fmt.Sprintf("%s: p50 added at %d/s, less what always-allow adds, µs", v.name, perSecond), measured: v.minus(atRate(perSecond), allow), format: "%.0f", atMost: true,
			})
		}
	}
	goals = append(goals, goal{what: cold.name + ": CPU, of always-allow's", measured: cold.ratio(cpuAuth, allow), format: "%.2f", atMost: true, bound: 2.0})
	writeGoals(&page, goals)
	r.conditions(&page)
	return page.String()
}

// minus is how much higher a figure is than that of another variant, round by round.
func (v *variant) minus(figure string, than *variant) spread {
	return v.pair(figure, than, func(a, b float64) float64 { return a - b })
}
