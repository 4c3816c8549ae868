// Package lasting does work on goroutines that stay: on one that has just begun, the stack would have to grow each time, as
// deep as a database calls.
//
// It bounds no work: what a goroutine does for too long, and who else waits for it, is for its user to say.
package lasting

import "sync"

// Crew is some goroutines that do the same. Stop it in the end.
type Crew[T any] struct {
	// Give hands work to a goroutine that has none; a send waits until there is one. After Stop nobody receives.
	Give chan<- T
	// Stopped is closed by Stop.
	Stopped <-chan struct{}

	stop  func()
	ended sync.WaitGroup
}

// Start starts n goroutines.
func Start[T any](n int, do func(T)) *Crew[T] {
	work, stopped := make(chan T), make(chan struct{})
	c := &Crew[T]{Give: work, Stopped: stopped, stop: sync.OnceFunc(func() { close(stopped) })}
	for range n {
		c.ended.Go(func() {
			for {
				select {
				case <-stopped:
					return
				case w := <-work:
					do(w)
				}
			}
		})
	}
	return c
}

// Stop tells the goroutines to end, each when it has done what it does.
func (c *Crew[T]) Stop() { c.stop() }

// Wait returns when they have ended, after Stop.
func (c *Crew[T]) Wait() { c.ended.Wait() }
