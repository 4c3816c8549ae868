package memory

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"sallyport/memory/belief"
	"sallyport/memory/refusal"
)

// Proposal is a statement that somebody found in a text, as it was given.
type Proposal struct {
	Subject     string          `json:"subject"`
	Predicate   string          `json:"predicate"`
	Value       json.RawMessage `json:"value"`
	Evidence    string          `json:"evidence"`
	Replaces    []belief.Ref    `json:"replaces,omitempty"`
	Cardinality string          `json:"cardinality,omitempty"`
	Description string          `json:"description,omitempty"`
}

// TextResult is what a text and its statements came to.
type TextResult struct {
	Episode   RememberResult   `json:"episode"`   // the note that holds the whole text
	Proposals []Proposal       `json:"proposals"` // null without any
	Results   []RememberResult `json:"results"`
	Unfiled   []Proposal       `json:"unfiled,omitempty"` // whose predicate does not exist
}

// Bounds of a text, and how much it is believed: what somebody read out of a text is less sure than what was stated.
const (
	maxTextBytes        = 32768
	maxStatements       = 32
	episodeSubject      = "user"
	episodeConfidence   = 0.5
	statementConfidence = 0.8
)

func (s *Service) rememberText(ctx context.Context, c Caller, a RememberArgs) (any, error) {
	if err := checkText(a, s.extraction != nil); err != nil {
		return nil, err
	}
	now := s.clock()
	at, err := stated(a.ObservedAt, now)
	if err != nil {
		return nil, err
	}
	if a.Statements == nil {
		return s.extractText(ctx, c, *a.Text, at, now)
	}
	var out TextResult
	err = s.write(ctx, c, func(w Writer) error {
		filed, unfiled, err := s.proposals(w, *a.Text, *a.Statements, at, now)
		if err != nil {
			return err
		}
		out, err = s.fileText(w, *a.Text, at, filed, unfiled)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(*a.Statements) > 0 {
		out.Proposals = *a.Statements
	}
	return out, nil
}

// extractText keeps a text, and files what a model finds in it.
func (s *Service) extractText(ctx context.Context, c Caller, text string, at, now time.Time) (out TextResult, err error) {
	found := s.extract(ctx, c, text)
	err = s.write(ctx, c, func(w Writer) error {
		filed, kept, err := s.fitting(w, text, found, at, now)
		if err != nil {
			return err
		}
		out, err = s.fileText(w, text, at, filed, nil)
		out.Proposals = kept
		return err
	})
	return out, err
}

// checkText checks all but the statements themselves, which are needed unless a model finds them.
func checkText(a RememberArgs, extracting bool) error {
	for _, member := range []struct {
		name  string
		given bool
	}{
		{"subject", a.Subject != nil},
		{"predicate", a.Predicate != nil},
		{"value", a.Value != nil},
		{"kind", deref(a.Kind) != ""},
		{"source", deref(a.Source) != ""},
		{"confidence", a.Confidence != nil},
		{"replaces", a.Replaces != nil},
		{"cardinality", deref(a.Cardinality) != ""},
		{"description", deref(a.Description) != ""},
		{"messages", a.Messages != nil},
	} {
		if member.given {
			return refusal.New("%s does not go with text: give a text and its statements, or one statement without a text", member.name)
		}
	}
	switch text := deref(a.Text); {
	case strings.TrimSpace(text) == "":
		return refusal.New("text is missing: statements are found in one")
	case len(text) > maxTextBytes:
		return refusal.New("text has %d bytes; at most %d are allowed", len(text), maxTextBytes)
	case a.Statements == nil && extracting:
		return nil
	case a.Statements == nil:
		return refusal.New("statements is missing: this server finds none in a text itself, so give those you found, or [] to keep the text as a note")
	case len(*a.Statements) > maxStatements:
		return refusal.New("statements has %d entries; at most %d are allowed", len(*a.Statements), maxStatements)
	}
	return nil
}

// filable is a proposal that passed every check.
type filable struct {
	st belief.Statement
	p  belief.Predicate
}

// proposals checks every statement before anything is written, and sets those apart whose predicate does not exist.
func (s *Service) proposals(r Reader, text string, given []Proposal, at, now time.Time) (filed []filable, unfiled []Proposal, err error) {
	defined := map[string]belief.Predicate{} // by statements of this text
	for i, p := range given {
		exists, err := s.exists(r, p.Predicate)
		if err != nil {
			return nil, nil, err
		}
		f, err := s.proposal(r, text, p, exists, defined, at, now)
		if err != nil {
			if said := refusal.As(err); said != nil {
				err = refusal.New("statement %d: %s", i+1, said.Text)
			}
			return nil, nil, err
		}
		if !exists {
			unfiled = append(unfiled, p)
			continue
		}
		given[i].Predicate = f.p.Name // the caller is told the name it is filed under
		filed = append(filed, f)
	}
	return filed, unfiled, nil
}

// exists says whether statements can be filed under a predicate. On an open vocabulary they can be under any.
func (s *Service) exists(r Reader, spelled string) (bool, error) {
	if s.words.IsOpen() {
		return true, nil
	}
	_, ok, err := s.lookup(r, s.asked(spelled))
	return ok, err
}

func (s *Service) proposal(r Reader, text string, p Proposal, exists bool, defined map[string]belief.Predicate, at, now time.Time) (f filable, err error) {
	switch {
	case p.Evidence == "":
		return f, refusal.New("evidence is missing: quote the words of the text that say it")
	case !strings.Contains(text, p.Evidence):
		return f, refusal.New("evidence %q does not stand in the text word for word", p.Evidence)
	}
	if f.st.Subject = belief.Subject(p.Subject); f.st.Subject == "" {
		return f, refusal.New("subject is missing")
	}
	if len(p.Replaces) > maxReplaces {
		return f, refusal.New("replaces has %d entries; at most %d are allowed", len(p.Replaces), maxReplaces)
	}
	if !exists {
		return f, nil
	}
	if f.p, err = s.predicate(r, p.Predicate, p.Cardinality, p.Description, now); err != nil {
		return f, err
	}
	if earlier, ok := defined[f.p.Name]; ok {
		f.p = earlier
	}
	if f.st.Value, err = valueOf(p.Value, f.p.Name, f.p.ValueType); err != nil {
		return f, err
	}
	if f.p.ValueType == "" {
		f.p.ValueType = f.st.Value.Type()
	}
	defined[f.p.Name] = f.p
	f.st.Predicate, f.st.Kind, f.st.Source, f.st.Confidence = f.p.Name, belief.Fact, belief.AgentInferred, statementConfidence
	if strings.HasPrefix(f.p.Name, "prefers_") {
		f.st.Kind = belief.Preference
	}
	f.st.At, f.st.Evidence, f.st.Replaces = at, p.Evidence, p.Replaces
	return f, nil
}

// fileText keeps the text and files its statements. A statement that could not be filed leaves the text as a note about
// its subject, so that it is found by asking about that.
func (s *Service) fileText(w Writer, text string, at time.Time, filed []filable, unfiled []Proposal) (out TextResult, err error) {
	if out.Episode, err = s.fileNote(w, episodeSubject, text, at); err != nil {
		return out, err
	}
	for _, f := range filed {
		f.st.EvidenceID = out.Episode.Stored.EventID
		r, err := s.file(w, f.st, f.p)
		if err != nil {
			return out, err
		}
		out.Results = append(out.Results, r)
	}
	var about []string
	for _, p := range unfiled {
		subject := belief.Subject(p.Subject)
		if slices.Contains(about, subject) {
			continue
		}
		about = append(about, subject)
		if subject == episodeSubject {
			out.Results = append(out.Results, out.Episode)
			continue
		}
		r, err := s.fileNote(w, subject, text, at)
		if err != nil {
			return out, err
		}
		out.Results = append(out.Results, r)
	}
	if len(filed)+len(unfiled) == 0 {
		out.Results = []RememberResult{out.Episode}
	}
	out.Unfiled = unfiled
	return out, nil
}

func (s *Service) fileNote(w Writer, subject, text string, at time.Time) (RememberResult, error) {
	note, _ := s.words.Starter(belief.Note)
	return s.file(w, belief.Statement{
		Subject: subject, Predicate: note.Name, Value: belief.Text(text), Kind: belief.Fact, Source: belief.AgentInferred,
		Confidence: episodeConfidence, At: at,
	}, note)
}
