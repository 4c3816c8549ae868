package belief

import (
	"database/sql"
	"strings"
	"testing"
	"unicode"

	_ "modernc.org/sqlite"
)

// The tokenizer of SQLite's full-text search, which others wrote, says what is right.
func index(t *testing.T, tokenizer string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	for _, statement := range []string{
		`CREATE VIRTUAL TABLE words USING fts5 (text, tokenize = "` + tokenizer + `")`,
		"CREATE VIRTUAL TABLE terms USING fts5vocab (words, instance)",
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// terms returns what SQLite makes of each word.
func terms(t *testing.T, db *sql.DB, words []string) []string {
	t.Helper()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range words {
		if _, err := tx.Exec("INSERT INTO words (rowid, text) VALUES (?, ?)", i, w); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	rows, err := db.Query("SELECT doc, term FROM terms")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // a test
	out := make([]string, len(words))
	for rows.Next() {
		var at int
		var term string
		if err := rows.Scan(&at, &term); err != nil {
			t.Fatal(err)
		}
		out[at] += term
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestStemsAreThoseOfPortersAlgorithm(t *testing.T) {
	endings := []string{
		"", "s", "es", "ss", "sses", "ies", "ied", "ed", "eed", "ing", "y", "ying", "ly", "li", "ational", "tional", "enci", "anci", "izer", "logi",
		"bli", "alli", "entli", "eli", "ousli", "ization", "ation", "ator", "alism", "iveness", "fulness", "ousness", "aliti", "iviti", "biliti",
		"icate", "ative", "alize", "iciti", "ical", "ful", "ness", "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment",
		"ent", "ion", "sion", "tion", "ou", "ism", "ate", "iti", "ous", "ive", "ize", "e", "ee", "l", "ll", "le", "at", "bl", "iz", "ss",
	}
	stems := strings.Fields(`a b be hop hopp fall hiss fizz fil fail plan plann agr f troubl tann control roll cav relat condit rat val digit
		vil hes oper feud deci hope form sensit adjust depend replac irrit bowdl activ effect angular commun adopt homolog y by say syzygy
		x ox queue sky happ toy 東京 zur über`)
	var words []string
	for i, s := range stems {
		for j, e := range endings {
			words = append(words, s+e, s+e+endings[(i+7*j)%len(endings)]) // and a second ending
		}
	}
	for i, want := range terms(t, index(t, "porter unicode61 remove_diacritics 2"), words) {
		if got := stem(fold(words[i])); got != want {
			t.Errorf("%s: got %s, want %s", words[i], got, want)
		}
	}
}

func TestLettersLoseTheirAccents(t *testing.T) {
	var words []string
	for r := rune(0x80); r < 0x2000; r++ {
		// It lacks ǡ, and of other scripts it knows an older Unicode, and folds nothing.
		known := unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Inherited) && unicode.ToLower(r) == r
		if text := "a" + string(r) + "a"; r != 'ǡ' && known && (r < 0x370 || unicode.IsLetter(r)) && len(Words(text)) == 1 {
			words = append(words, text)
		}
	}
	for i, want := range terms(t, index(t, "unicode61 remove_diacritics 2"), words) {
		if got := fold(words[i]); got != want {
			t.Errorf("%s (%+q): got %s, want %s", words[i], words[i], got, want)
		}
	}
}
