package sqlstore

import "slices"

// tables are all that hold rows of a namespace, those first that refer to others.
var tables = []string{"usage", "vectors", "words", "word_counts", "beliefs", "events", "predicates", "sessions", "states", "turns", "outputs", "pointers", "actions", "agents"}

// Tables returns the names of the tables that Erase empties of a namespace.
func Tables() []string { return slices.Clone(tables) }

// Erase deletes every row of the namespace.
func (s *Scope) Erase() error {
	for _, t := range tables {
		if err := s.exec("erase "+t, "DELETE FROM "+t+" WHERE namespace = ?", s.ns); err != nil {
			return err
		}
	}
	return s.exec("erase the namespace", "DELETE FROM namespaces WHERE num = ?", s.ns)
}
