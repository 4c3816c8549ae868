package sqlstore

import (
	"database/sql"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"sallyport/memory"
	"sallyport/memory/belief"
)

// Vectors calls fn with the vectors of a model. Which statements they are of is found out first: to sort the vectors
// themselves would move all of their numbers about.
func (s *Scope) Vectors(q memory.VectorFilter, fn func(memory.Vector)) error {
	latest, args := "SELECT seq FROM vectors WHERE namespace = ?", []any{s.ns}
	if q.Believed != nil {
		where, of := s.beliefConditions(*q.Believed)
		latest, args = "SELECT b.seq FROM beliefs b WHERE "+where, of
	}
	query := "SELECT v.seq, v.numbers FROM (" + latest + " ORDER BY seq DESC" + limit(q.Limit) + `) AS latest
		CROSS JOIN vectors v WHERE v.seq = latest.seq AND v.namespace = ? AND v.model = ? AND v.size = ?` // CROSS keeps this order in SQLite
	args = append(args, s.ns)
	v := memory.Vector{Numbers: make([]float32, q.Size)}
	return s.rows("read vectors", query, append(args, q.Model, q.Size), func(r row) error {
		var raw sql.RawBytes
		if err := r.Scan(&v.Seq, &raw); err != nil {
			return err
		}
		if len(raw) != q.Size*numberBytes {
			return fmt.Errorf("the vector of %d has %d bytes", v.Seq, len(raw))
		}
		for i := range v.Numbers {
			v.Numbers[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[i*numberBytes:]))
		}
		fn(v)
		return nil
	})
}

// PutVectors writes vectors of statements, in the place of those of another model.
func (s *Scope) PutVectors(model string, vectors []memory.Vector) error {
	for _, v := range vectors {
		err := s.exec("write a vector", `INSERT INTO vectors (seq, namespace, model, size, numbers) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (seq) DO UPDATE SET model = excluded.model, size = excluded.size, numbers = excluded.numbers
			WHERE vectors.namespace = excluded.namespace`, v.Seq, s.ns, model, len(v.Numbers), packed(v.Numbers))
		if err != nil {
			return err
		}
	}
	return nil
}

// WithoutVector returns the Seq of statements that have no vector of the model and size, the latest first.
func (s *Scope) WithoutVector(model string, size, most int) ([]int64, error) {
	stale, args := "v.seq IS NULL OR v.model <> ?", []any{s.ns, model}
	if size > 0 {
		stale += " OR v.size <> ?"
		args = append(args, size)
	}
	var out []int64
	query := `SELECT e.seq FROM events e LEFT JOIN vectors v ON v.seq = e.seq AND v.namespace = e.namespace
		WHERE e.namespace = ? AND e.retraction = 0 AND (` + stale + ") ORDER BY e.seq DESC" + limit(most)
	err := s.rows("look for statements without a vector", query, args, func(r row) error {
		var seq int64
		err := r.Scan(&seq)
		out = append(out, seq)
		return err
	})
	return out, err
}

// Statements returns events by their Seq, those that there are.
func (s *Scope) Statements(seqs []int64) ([]belief.Event, error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	var out []belief.Event
	query := "SELECT " + eventColumns + " FROM events WHERE namespace = ? AND seq IN " + among(seqs)
	err := s.rows("read statements", query, []any{s.ns}, func(r row) error {
		e, err := scanEvent(r.Scan)
		out = append(out, e)
		return err
	})
	return out, err
}

// BeliefsOf returns the beliefs that rest on the statements, in no order.
func (s *Scope) BeliefsOf(seqs []int64) ([]belief.Belief, error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	var out []belief.Belief
	query := "SELECT " + beliefColumns + " FROM beliefs b WHERE b.namespace = ? AND b.seq IN " + among(seqs)
	err := s.rows("read beliefs", query, []any{s.ns}, func(r row) error {
		b, err := scanBelief(r)
		out = append(out, b)
		return err
	})
	return out, err
}

// among lists numbers for SQL.
func among(seqs []int64) string {
	list := make([]string, len(seqs))
	for i, n := range slices.Sorted(slices.Values(seqs)) {
		list[i] = fmt.Sprint(n)
	}
	return "(" + strings.Join(list, ", ") + ")"
}

const numberBytes = 4

func packed(numbers []float32) []byte {
	out := make([]byte, 0, len(numbers)*numberBytes)
	for _, n := range numbers {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(n))
	}
	return out
}
