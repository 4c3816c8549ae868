package lasting_test

import (
	"sync/atomic"
	"testing"

	"sallyport/internal/lasting"
)

func TestACrewDoesWhatItIsGivenAndEnds(t *testing.T) {
	var done atomic.Int64
	began, goOn := make(chan struct{}), make(chan struct{})
	crew := lasting.Start(2, func(n int64) {
		began <- struct{}{}
		<-goOn
		done.Add(n)
	})
	for _, n := range []int64{1, 10} {
		crew.Give <- n
		<-began
	}
	select {
	case crew.Give <- 100:
		t.Error("work was taken though all are busy")
	default:
	}
	crew.Stop()
	crew.Stop() // twice does no harm
	<-crew.Stopped
	if done.Load() != 0 {
		t.Error("Stop waited")
	}
	close(goOn)
	crew.Wait()
	if done.Load() != 11 {
		t.Errorf("what was begun is not done: %d", done.Load())
	}
	select {
	case crew.Give <- 100:
		t.Error("work was taken after the end")
	default:
	}
}
