// Package belief says what is believed. Statements and retractions are events, never changed once written; what is
// believed at an instant is what the events up to that instant say, folded in order of time.
//
// Everything here is a pure function of its arguments: no database, no clock, no network. A store keeps the events, and
// beside them the beliefs that they amount to today; package memory asks both.
package belief
