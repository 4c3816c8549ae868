// Package difftest holds its tests only: the same generated sequence of operations goes to the reference of the Memory
// API, a real `recall serve`, and to Sallyport, and every answer has to be the same.
//
// What differs on purpose is in docs/compatibility.md, and excused here where it shows and nowhere else (excuse_test.go).
// Not compared are sentences (what a briefing tells is, and in which order), instants of the run, what epochs count, which
// eight of more related beliefs are told, the order that a search gives, and how a briefing is cut to a budget that fits
// neither nothing nor everything, since the sentences differ in length.
//
// A divergence is told with the shortest sequence found that still shows it. Each sequence has a namespace of its own,
// and ends with an audit that asks for everything.
//
//	go test ./memory/difftest -steps 20000 -seed 7
//
// A run tells up to ten divergences; -from 123 begins with the sequence that one of them named.
package difftest
