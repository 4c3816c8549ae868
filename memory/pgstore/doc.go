// Package pgstore keeps memories in PostgreSQL, for as many replicas as one likes: one process sees what another wrote as
// soon as that was committed, and of those who write to one namespace each waits for the one before.
//
// The statements are those of package sqlstore. Here are the schema, the connections, and the index of words, whose stems
// are those that SQLite makes, so that the same question finds the same beliefs on both.
package pgstore
