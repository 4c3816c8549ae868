package extauthz

import (
	"context"

	"sallyport/internal/key"
)

// source is where a decision takes what it needs to know: from memory, or from wherever it is.
type source interface {
	verify(presented []byte) (key.Claims, error)
	status(id string) (Status, error)
}

type memory struct {
	keys     Keys
	statuses Statuses
}

func (m memory) verify(presented []byte) (key.Claims, error) { return m.keys.Recall(presented) }

func (m memory) status(id string) (Status, error) { return m.statuses.Recall(id) }

type asking struct {
	ctx      context.Context //nolint:containedctx // of one decision, for whose length the source lives
	keys     Keys
	statuses Statuses
}

func (a asking) verify(presented []byte) (key.Claims, error) { return a.keys.Verify(a.ctx, presented) }

func (a asking) status(id string) (Status, error) { return a.statuses.Status(a.ctx, id) }

// reasonNotInMemory is of a decision from memory alone that has to be made again. It never leaves the package.
const reasonNotInMemory Reason = "not_in_memory"

// notInMemory is a denial all the same: if anybody forgot to ask again, nothing would pass. It is made once, since every
// cold check comes by.
var notInMemory = Decision{Reason: reasonNotInMemory, Denial: denialOf(ReasonUnavailable, ErrNotInMemory)}

func denyUnavailable(err error) Decision {
	if err == ErrNotInMemory { //nolint:errorlint // it is never wrapped, and this is on every cold check's way
		return notInMemory
	}
	return deny(ReasonUnavailable, err)
}
