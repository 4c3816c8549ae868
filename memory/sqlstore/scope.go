package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"sallyport/memory"
	"sallyport/memory/limits"
)

// Unknown is the number of a namespace that nothing was written to. No row has it.
const Unknown int64 = 0

// Dialect is where the engines differ. It must not be copied once it is used.
type Dialect struct {
	// Numbered says that parameters are $1, $2 and so on instead of question marks.
	Numbered bool
	// NoNUL says that a text cannot hold the character 0.
	NoNUL bool
	// KeyedByHash says that subjects are looked up by the column subject_key, which is the MD5 of subject in hex: in an
	// index of PostgreSQL there is no room for a long one.
	KeyedByHash bool
	// Pairs returns a row source w with the columns subject and same, and subject_key where KeyedByHash, that holds the
	// subjects and keys of values given.
	Pairs func(subjects, keys []string) (source string, args []any, err error)
	// List returns a row source whose column value holds texts, and its one parameter.
	List func(texts []string) (source string, arg any, err error)
	// OneOf returns a condition that a column has one of some texts, and its one parameter.
	OneOf func(column string, texts []string) (condition string, arg any, err error)
	// Counts returns a row source with the columns stem and beliefs.
	Counts func(stems []string, beliefs []int64) (source string, args []any, err error)
	// EachWord returns a query for the rows of each word's inner query, and its weight beside them.
	EachWord func(words []Word, inner Inner) (query string, args []any)

	numbered sync.Map // statements as they are written here, to statements with numbered parameters
}

// Scope is one transaction on one namespace. It lives no longer than the call it was made for, which is why it may keep
// the call's context.
type Scope struct {
	ctx     context.Context //nolint:containedctx // see above
	tx      *sql.Tx
	ns      int64
	dialect *Dialect
	added   limits.Usage     // by this transaction
	counts  map[string]int64 // by this transaction: how many more beliefs hold a stem
}

var _ memory.Writer = (*Scope)(nil)

// NewScope reads and writes the namespace of a number in a transaction.
func NewScope(ctx context.Context, tx *sql.Tx, namespace int64, d *Dialect) *Scope {
	return &Scope{ctx: ctx, tx: tx, ns: namespace, dialect: d}
}

// Extend moves the end of a lease of the namespace if it is still of the epoch named.
func (s *Scope) Extend(l memory.Extension) error {
	return s.exec("extend a lease", "UPDATE agents SET expires = ? WHERE namespace = ? AND agent = ? AND epoch = ? AND held = 1",
		stamp(l.Expires), s.ns, l.Agent, l.Epoch)
}

func (s *Scope) exec(what, query string, args ...any) error {
	query, args = s.dialect.spell(query, args)
	if _, err := s.tx.ExecContext(s.ctx, query, args...); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// update executes a statement and says whether it changed a row.
func (s *Scope) update(what, query string, args ...any) (bool, error) {
	query, args = s.dialect.spell(query, args)
	res, err := s.tx.ExecContext(s.ctx, query, args...)
	if err != nil {
		return false, fmt.Errorf("%s: %w", what, err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return false, fmt.Errorf("%s: %w", what, err)
	}
	return n > 0, nil
}

// row is one row of an answer.
type row struct {
	rows    *sql.Rows
	dialect *Dialect
}

// Scan reads the columns.
func (r row) Scan(into ...any) error {
	if err := r.rows.Scan(into...); err != nil {
		return err
	}
	r.dialect.unescape(into)
	return nil
}

// rows calls each for every row of a query.
func (s *Scope) rows(what, query string, args []any, each func(row) error) (err error) {
	query, args = s.dialect.spell(query, args)
	rows, err := s.tx.QueryContext(s.ctx, query, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := each(row{rows, s.dialect}); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// row scans the only row of a query; the result is false if there is none.
func (s *Scope) row(what, query string, args []any, into ...any) (bool, error) {
	query, args = s.dialect.spell(query, args)
	err := s.tx.QueryRowContext(s.ctx, query, args...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", what, err)
	}
	s.dialect.unescape(into)
	return true, nil
}

// spell writes a statement and its arguments as the engine takes them.
func (d *Dialect) spell(query string, args []any) (string, []any) {
	if d.Numbered {
		query = d.number(query)
	}
	if !d.NoNUL {
		return query, args
	}
	out := make([]any, len(args))
	for i, a := range args {
		out[i] = a
		if text, ok := a.(string); ok {
			out[i] = d.text(text)
		}
	}
	return query, out
}

func (d *Dialect) text(s string) string {
	if !d.NoNUL || !strings.ContainsAny(s, "\x00\x01") {
		return s
	}
	return escaper.Replace(s)
}

// subject returns a condition that the column subject of a table equals a parameter, which it takes so many times.
func (d *Dialect) subject(table string) (condition string, times int) {
	if !d.KeyedByHash {
		return table + ".subject = ?", 1
	}
	return table + ".subject_key = md5(?) AND " + table + ".subject = ?", 2 //nolint:mnd // as written
}

// Texts with the character 0, or with the one that stands for it, are written in an escaped form.
var (
	escaper   = strings.NewReplacer("\x00", "\x010", "\x01", "\x011")
	unescaper = strings.NewReplacer("\x010", "\x00", "\x011", "\x01")
)

func (d *Dialect) unescape(into []any) {
	if !d.NoNUL {
		return
	}
	for _, v := range into {
		if text, ok := v.(*string); ok && strings.ContainsRune(*text, '\x01') {
			*text = unescaper.Replace(*text)
		}
	}
}

func (d *Dialect) number(query string) string {
	if known, ok := d.numbered.Load(query); ok {
		return known.(string)
	}
	parts := strings.Split(query, "?")
	var b strings.Builder
	for i, part := range parts {
		if i > 0 {
			fmt.Fprintf(&b, "$%d", i)
		}
		b.WriteString(part)
	}
	d.numbered.Store(query, b.String())
	return b.String()
}

// flag is how both engines keep what is true or not.
func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// layout has a fixed width, so that instants sort as text. No engine has a type for instants that keeps nanoseconds.
const layout = "2006-01-02T15:04:05.000000000Z"

func stamp(t time.Time) string { return t.UTC().Format(layout) }

func unstamp(s string) (time.Time, error) {
	t, err := time.Parse(layout, s)
	if err != nil {
		return t, fmt.Errorf("read an instant: %w", err)
	}
	return t, nil
}
