package sqlstore

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"sallyport/memory"
	"sallyport/memory/belief"
)

const eventColumns = `seq, id, subject, predicate, observed_at, value, kind, source, confidence, retraction, replaces, replaced_by, evidence, evidence_id`

// Append writes events and sets their Seq.
func (s *Scope) Append(events []belief.Event) error {
	for i := range events {
		e := &events[i]
		value, replaces, err := encode(e.Value, e.Replaces)
		if err != nil {
			return err
		}
		_, err = s.row("append an event", `INSERT INTO events (namespace, id, subject, predicate, observed_at, value, kind, source,
			confidence, retraction, replaces, replaced_by, evidence, evidence_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING seq`,
			[]any{
				s.ns, e.ID, e.Subject, e.Predicate, stamp(e.ObservedAt), value, e.Kind, e.Source,
				e.Confidence, flag(e.Retraction), replaces, e.ReplacedBy, e.Evidence, e.EvidenceID,
			}, &e.Seq)
		if err != nil {
			return err
		}
		s.grown(e.Subject, e.Predicate, value, replaces, e.Evidence)
	}
	return nil
}

// Events returns events in order of time.
func (s *Scope) Events(f memory.EventFilter) ([]belief.Event, error) {
	where, args := s.eventConditions(f)
	query := "SELECT " + eventColumns + " FROM events WHERE " + where + " ORDER BY observed_at, seq" + limit(f.Limit)
	var out []belief.Event
	err := s.rows("read events", query, args, func(r row) error {
		e, err := scanEvent(r.Scan)
		out = append(out, e)
		return err
	})
	return out, err
}

// Latest returns the instant of the latest event. It asks for one predicate at a time, which the index answers with one
// step however many events there are.
func (s *Scope) Latest(subject string, predicates []string) (*time.Time, error) {
	var latest *time.Time
	for _, p := range predicates {
		var at string
		where, args := s.eventConditions(memory.EventFilter{Subject: subject, Predicates: []string{p}})
		ok, err := s.row("read the latest event", "SELECT observed_at FROM events WHERE "+where+" ORDER BY observed_at DESC LIMIT 1", args, &at)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		t, err := unstamp(at)
		if err != nil {
			return nil, err
		}
		if latest == nil || t.After(*latest) {
			latest = &t
		}
	}
	return latest, nil
}

// Event returns one event.
func (s *Scope) Event(id string) (belief.Event, bool, error) {
	var e belief.Event
	var ok bool
	err := s.rows("read an event", "SELECT "+eventColumns+" FROM events WHERE namespace = ? AND id = ?", []any{s.ns, id}, func(r row) (err error) {
		ok = true
		e, err = scanEvent(r.Scan)
		return err
	})
	return e, ok, err
}

// Pairs returns the pairs that have events in a stretch of time.
func (s *Scope) Pairs(from, to time.Time, subject string) ([]memory.Pair, error) {
	where, args := s.eventConditions(memory.EventFilter{Subject: subject, After: &from, UpTo: &to})
	var out []memory.Pair
	err := s.rows("read changed pairs", "SELECT DISTINCT subject, predicate FROM events WHERE "+where, args, func(r row) error {
		var p memory.Pair
		err := r.Scan(&p.Subject, &p.Predicate)
		out = append(out, p)
		return err
	})
	return out, err
}

func (s *Scope) eventConditions(f memory.EventFilter) (string, []any) {
	where, args := []string{"events.namespace = ?"}, []any{s.ns}
	add := func(condition string, arg ...any) {
		where, args = append(where, condition), append(args, arg...)
	}
	if f.Subject != "" {
		condition, times := s.dialect.subject("events")
		add(condition, slices.Repeat([]any{f.Subject}, times)...)
	}
	if len(f.Predicates) > 0 {
		names := make([]any, len(f.Predicates))
		for i, p := range f.Predicates {
			names[i] = p
		}
		add("events.predicate IN (?"+strings.Repeat(", ?", len(names)-1)+")", names...)
	}
	if f.After != nil {
		add("events.observed_at > ?", stamp(*f.After))
	}
	if f.UpTo != nil {
		add("events.observed_at <= ?", stamp(*f.UpTo))
	}
	return strings.Join(where, " AND "), args
}

func limit(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" LIMIT %d", n)
}

func scanEvent(scan func(...any) error) (belief.Event, error) {
	var e belief.Event
	var at, value, replaces string
	err := scan(&e.Seq, &e.ID, &e.Subject, &e.Predicate, &at, &value, &e.Kind, &e.Source, &e.Confidence, &e.Retraction, &replaces, &e.ReplacedBy, &e.Evidence, &e.EvidenceID)
	if err != nil {
		return e, err
	}
	if e.ObservedAt, err = unstamp(at); err != nil {
		return e, err
	}
	return e, decode(value, replaces, &e.Value, &e.Replaces)
}

func encode(v belief.Value, priors []belief.Prior) (value, list string, err error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", "", fmt.Errorf("write a value: %w", err)
	}
	if len(priors) == 0 {
		return string(raw), "", nil
	}
	rawList, err := json.Marshal(priors)
	if err != nil {
		return "", "", fmt.Errorf("write values that were replaced: %w", err)
	}
	return string(raw), string(rawList), nil
}

func decode(value, list string, v *belief.Value, priors *[]belief.Prior) error {
	if err := json.Unmarshal([]byte(value), v); err != nil {
		return fmt.Errorf("read a value: %w", err)
	}
	if list == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(list), priors); err != nil {
		return fmt.Errorf("read values that were replaced: %w", err)
	}
	return nil
}
