package memory

import (
	"context"
	"time"

	"sallyport/memory/refusal"
)

// Admit counts one request of a namespace, and refuses it if there were too many lately.
func (s *Service) Admit(namespace string) error {
	wait := s.rate.Take(namespace)
	if wait == 0 {
		return nil
	}
	s.metrics.refused("requests")
	return refusal.Wait(wait, "this namespace may make %g requests a second here and has made more: wait for %s, or ask whoever runs the server to raise max-requests-per-second",
		s.limits.RequestsPerSecond, wait.Round(time.Millisecond))
}

// write calls fn with the namespace to itself, and undoes all of it if the namespace would then hold more than it may.
func (s *Service) write(ctx context.Context, c Caller, fn func(Writer) error) error {
	return s.writeAnyway(ctx, c, func(w Writer) error {
		if err := fn(w); err != nil {
			return err
		}
		return s.room(w)
	})
}

// writeAnyway is write for what has to be possible in a full namespace: to forget, to take an agent up and give it back,
// to close an action. None of them can be repeated to write ever more.
func (s *Service) writeAnyway(ctx context.Context, c Caller, fn func(Writer) error) error {
	if s.meaning == nil {
		return s.store.Write(ctx, c.Namespace, fn)
	}
	var seqs []int64
	err := s.store.Write(ctx, c.Namespace, func(w Writer) error {
		n := noting{Writer: w}
		err := fn(&n)
		seqs = n.seqs
		return err
	})
	if err == nil {
		s.meaning.backlog.add(c.Namespace, seqs)
	}
	return err
}

// room refuses what was written so far if the namespace holds more than it may with it.
func (s *Service) room(w Writer) error {
	if s.limits.Records == 0 && s.limits.Bytes == 0 {
		return nil
	}
	held, added, err := w.Usage()
	if err != nil {
		return err
	}
	name, most := s.limits.Over(held, added)
	if name == "" {
		return nil
	}
	s.metrics.refused(name)
	holds, adds := held.Records, added.Records
	if name == "bytes" {
		holds, adds = held.Bytes, added.Bytes
	}
	return refusal.NoRoom("this namespace may hold %d %s, it holds %d, and this would add %d; nothing of it was written. To forget makes no room, since the history is kept: "+
		"ask whoever runs the server to raise max-%s, or to erase a namespace that is not needed", most, name, holds, adds, name)
}
