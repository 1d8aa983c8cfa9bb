package process

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Interruption is the cause of a context that was canceled by a signal.
type Interruption struct{ os.Signal }

func (Interruption) Error() string { return "interrupted" }

func (Interruption) Unwrap() error { return context.Canceled }

// Code returns the exit code that shells give to a process that the signal has terminated: 128 plus
// the number of the signal (POSIX, Shell Command Language, 2.8.2).
func (i Interruption) Code() int {
	if s, ok := i.Signal.(syscall.Signal); ok {
		return 128 + int(s)
	}
	return 1
}

// Interrupts returns a context that the first SIGINT or SIGTERM cancels, with an Interruption as
// the cause. A second signal terminates the process at once.
func Interrupts() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(Interruption{s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(context.Canceled)
	}
}
