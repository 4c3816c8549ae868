package sqlstore

import (
	"sallyport/memory/limits"
)

// Usage returns what the namespace held when the transaction began, and what it has added so far. Only what it has added
// is counted; the sum of all that came before is kept.
func (s *Scope) Usage() (held, added limits.Usage, err error) {
	_, err = s.row("read how much is held", "SELECT records, bytes FROM usage WHERE namespace = ?", []any{s.ns}, &held.Records, &held.Bytes)
	return held, s.added, err
}

// Count writes what the transaction has added to the sum, and to the counts of words. It is the last that a write does.
func (s *Scope) Count() error {
	if err := s.countWords(); err != nil {
		return err
	}
	if s.added == (limits.Usage{}) {
		return nil
	}
	return s.exec("count what is held", `INSERT INTO usage (namespace, records, bytes) VALUES (?, ?, ?)
		ON CONFLICT (namespace) DO UPDATE SET records = usage.records + excluded.records, bytes = usage.bytes + excluded.bytes`,
		s.ns, s.added.Records, s.added.Bytes)
}

// Added returns how many records the transaction has added so far.
func (s *Scope) Added() int64 { return s.added.Records }

// grown notes that there is one record more, with these texts.
func (s *Scope) grown(texts ...string) {
	s.added.Records++
	for _, t := range texts {
		s.added.Bytes += s.size(t)
	}
}

// size is the length of a text as the database keeps it, in bytes.
func (s *Scope) size(text string) int64 { return int64(len(s.dialect.text(text))) }

// replaced notes that a record of some size, if there was one, has gone, and one with this text has come.
func (s *Scope) replaced(was *int64, text string) {
	if was == nil {
		s.grown(text)
		return
	}
	s.added.Bytes += s.size(text) - *was
}

// gone notes that there is one record of some size less.
func (s *Scope) gone(size int64) {
	s.added.Records--
	s.added.Bytes -= size
}

// sizeOf returns the size in bytes that a query tells; nil if it finds nothing.
func (s *Scope) sizeOf(what, query string, args ...any) (*int64, error) {
	var size int64
	ok, err := s.row("measure "+what, query, args, &size)
	if err != nil || !ok {
		return nil, err
	}
	return &size, nil
}
