// Package sqlstore is what SQLite and PostgreSQL have in common: the statements that read and write one namespace.
//
// It opens nothing and holds no schema: sqlitestore and pgstore do, each with a Dialect for the few places where the
// engines differ. It decides nothing: what to write is said by package memory. Every statement names the namespace it is
// about, whose number a transaction looks up once, when it begins.
package sqlstore
