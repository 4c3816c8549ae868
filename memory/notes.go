package memory

import (
	"context"
	"slices"
	"strings"
	"time"

	"sallyport/memory/belief"
	"sallyport/memory/refusal"
)

// NoteArgs are the arguments of remembering in plain words: one text, or a conversation.
type NoteArgs struct {
	Text       *string   `json:"text"`
	Messages   []Message `json:"messages"`
	ObservedAt string    `json:"observed_at"`
}

// Message is one message of a conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// NoteResult says what became of a text: what a model read out of it, or that it is kept as it is alone.
type NoteResult struct {
	Remembered []Remembered `json:"remembered,omitempty"`
	KeptAsText bool         `json:"kept_as_text"`
	Note       string       `json:"note"`
}

// RememberNote keeps a text, or a conversation as one text, as a note.
func (s *Service) RememberNote(ctx context.Context, c Caller, a NoteArgs) (out NoteResult, err error) {
	text, err := noted(a)
	if err != nil {
		return out, err
	}
	now := s.clock()
	at, err := stated(a.ObservedAt, now)
	if err != nil {
		return out, err
	}
	if s.extraction != nil {
		return s.extractNote(ctx, c, text, at, now)
	}
	err = s.write(ctx, c, func(w Writer) error {
		_, err := s.fileNote(w, episodeSubject, text, at)
		return err
	})
	if err != nil {
		return out, err
	}
	return NoteResult{KeptAsText: true, Note: "the text is kept word for word: this server reads no statements out of it"}, nil
}

// extractNote keeps a text, and files what a model finds in it about the user: whatever else it says is in the text.
func (s *Service) extractNote(ctx context.Context, c Caller, text string, at, now time.Time) (out NoteResult, err error) {
	found := slices.DeleteFunc(s.extract(ctx, c, text), func(p Proposal) bool { return belief.Subject(p.Subject) != episodeSubject })
	err = s.write(ctx, c, func(w Writer) error {
		filed, _, err := s.fitting(w, text, found, at, now)
		if err != nil {
			return err
		}
		r, err := s.fileText(w, text, at, filed, nil)
		out = NoteResult{KeptAsText: len(filed) == 0, Note: "nothing was read out of the text; it is kept word for word"}
		if len(filed) > 0 {
			out.Remembered, out.Note = inWords(r.Results), "the text is kept word for word, too"
		}
		return err
	})
	return out, err
}

// noted checks what is to be kept and returns it as one text.
func noted(a NoteArgs) (string, error) {
	switch {
	case a.Text != nil && a.Messages != nil:
		return "", refusal.New("text and messages are both given: give one of them")
	case a.Text == nil && a.Messages == nil:
		return "", refusal.New("nothing to remember is given: give text or messages")
	}
	text := deref(a.Text)
	if a.Messages != nil {
		var err error
		if text, err = conversation(a.Messages); err != nil {
			return "", err
		}
	}
	if strings.TrimSpace(text) == "" {
		return "", refusal.New("text is empty")
	}
	if len(text) > maxTextBytes {
		return "", refusal.New("the text has %d bytes; at most %d are allowed", len(text), maxTextBytes)
	}
	return text, nil
}

// conversation writes a line a message, so that it can be seen who said what.
func conversation(messages []Message) (string, error) {
	if len(messages) == 0 {
		return "", refusal.New("messages is empty")
	}
	speakers := map[string]string{"user": "User", "assistant": "Assistant"}
	oneLine := strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ")
	lines := make([]string, len(messages))
	for i, m := range messages {
		speaker, ok := speakers[m.Role]
		if !ok {
			return "", refusal.New("message %d: role %q is neither user nor assistant", i+1, m.Role)
		}
		said := strings.TrimSpace(m.Content)
		if said == "" {
			return "", refusal.New("message %d: content is empty", i+1)
		}
		lines[i] = speaker + ": " + oneLine.Replace(said)
	}
	return strings.Join(lines, "\n"), nil
}

// AskArgs are the arguments of recalling in plain words.
type AskArgs struct {
	Question string `json:"question"`
	AsOf     string `json:"as_of"`
	Since    string `json:"since"`
}

// Told is what is remembered, in words.
type Told struct {
	Memories []TextMemory `json:"memories"`
}

// TextMemory is one remembered text.
type TextMemory struct {
	Text    string `json:"text"`
	Since   string `json:"since"`    // the day it was stated, in UTC
	DaysAgo int    `json:"days_ago"` // from then to the instant asked about
}

// Ask returns what is remembered about the user: what answers a question, best first; without one, everything in order of
// time, or with since what was stated from then on, newest first.
func (s *Service) Ask(ctx context.Context, c Caller, a AskArgs) (Told, error) {
	out := Told{Memories: []TextMemory{}}
	f, at, err := s.asking(a)
	if err != nil {
		return out, err
	}
	s.embedQuestion(ctx, f.Search, a.Question)
	err = s.read(ctx, c, func(r Reader) error {
		found, err := s.believed(r, f, at)
		if err != nil {
			return err
		}
		if f.Search == nil {
			slices.SortStableFunc(found, belief.ByTime)
			if f.After != nil {
				slices.Reverse(found)
			}
		}
		for _, b := range found {
			out.Memories = append(out.Memories, TextMemory{
				Text: b.Sentence(), Since: b.ObservedAt.Format(time.DateOnly), DaysAgo: wholeDays(b.ObservedAt, at),
			})
		}
		return nil
	})
	return out, err
}

func (s *Service) asking(a AskArgs) (f Filter, at time.Time, err error) {
	f.Subject = episodeSubject
	if f.After, err = instant("since", a.Since); err != nil {
		return f, at, err
	}
	asOf, err := instant("as_of", a.AsOf)
	if err != nil {
		return f, at, err
	}
	if at = s.clock(); asOf != nil {
		at = *asOf
	}
	if strings.TrimSpace(a.Question) != "" {
		f.Search, f.Limit = search(a.Question, at), defaultLimit
		f.Search.Select = true
	}
	return f, at, nil
}

// TextArgs name something remembered in plain words.
type TextArgs struct {
	Text string `json:"text"`
}

// ForgetNote refuses: to tell which notes a text means takes a model, and forgetting the wrong ones cannot be undone by
// whoever asked.
func (s *Service) ForgetNote(context.Context, Caller, TextArgs) (ForgetResult, error) {
	return ForgetResult{}, refusal.New("forgetting in words needs a model that finds out which notes are meant, and this server has none")
}

// NoteHistory is how what is remembered about something changed. A note never changes, so there is nothing to tell.
type NoteHistory struct {
	History []belief.Timeline `json:"history"`
}

// AskHistory answers a question about how something changed.
func (s *Service) AskHistory(_ context.Context, _ Caller, a ExplainArgs) (NoteHistory, error) {
	if strings.TrimSpace(a.Question) == "" {
		return NoteHistory{}, refusal.New("question is missing")
	}
	return NoteHistory{History: []belief.Timeline{}}, nil
}

// BetweenArgs name two instants.
type BetweenArgs struct {
	From *string `json:"from"`
	To   string  `json:"to"`
}

// TextDiff is what is remembered differently at two instants, in words.
type TextDiff struct {
	Changes []TextChange `json:"changes"`
}

// TextChange lists, in alphabetical order, what began to be remembered and what ended.
type TextChange struct {
	Began []string `json:"began,omitempty"`
	Ended []string `json:"ended,omitempty"`
}

// Between compares what is remembered at two instants.
func (s *Service) Between(ctx context.Context, c Caller, a BetweenArgs) (TextDiff, error) {
	out := TextDiff{Changes: []TextChange{}}
	d, err := s.Diff(ctx, c, DiffArgs{From: a.From, To: a.To, Subject: episodeSubject})
	for _, x := range d.Changes {
		out.Changes = append(out.Changes, TextChange{Began: x.Added, Ended: x.Removed})
	}
	return out, err
}
