package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"tarazu/option"

	"github.com/sagernet/sing-box"
	C "github.com/sagernet/sing-box/constant"
	"github.com/sagernet/sing-box/log"
	E "github.com/sagernet/sing/common/exceptions"
	"github.com/spf13/cobra"
)

func runCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "Run service",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return run()
		},
	}
}

// run starts the box and follows signals: SIGHUP reloads, SIGINT and SIGTERM stop.
func run() error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	options, err := readValid() // start builds the box
	if err != nil {
		return err
	}
	running, err := start(options, signals)
	for running != nil {
		received := <-signals
		if received != syscall.SIGHUP {
			return running.stop(signals)
		}
		next, err := readChecked()
		if err != nil {
			log.Error(E.Cause(err, "reload: the old configuration stays"))
			continue
		}
		if err = running.stop(signals); err != nil {
			return err
		}
		running, err = start(next, signals)
		if err != nil {
			log.Error(E.Cause(err, "reload: back to the old configuration"))
			if running, err = start(options, signals); err != nil {
				return err
			}
			continue
		}
		options = next
	}
	return err
}

// instance is a box that has started.
type instance struct {
	*box.Box
	cancel context.CancelFunc
}

// start builds a box and starts it. A signal to stop ends the start too; then there is neither an instance nor an error.
func start(options option.Options, signals chan os.Signal) (*instance, error) {
	built, cancel, err := build(options)
	if err != nil {
		return nil, E.Cause(err, "create service")
	}
	it := &instance{built, cancel}
	started := make(chan error, 1)
	go func() { started <- built.Start() }()
	reload := false
	for {
		select {
		case err = <-started:
			if reload {
				signals <- syscall.SIGHUP
			}
			if err != nil {
				cancel()
				return nil, E.Cause(err, "start service")
			}
			debug.FreeOSMemory()
			return it, nil
		case received := <-signals:
			if received == syscall.SIGHUP {
				reload = true // once this start is over
				continue
			}
			cancel()
			if err = await(started, signals); err == errHangs {
				return nil, err
			}
			return nil, it.stop(signals)
		}
	}
}

// stop closes the box. A box that hangs is left to the end of the process.
func (i *instance) stop(signals <-chan os.Signal) error {
	i.cancel()
	closed := make(chan error, 1)
	go func() { closed <- i.Close() }()
	err := await(closed, signals)
	if err == errHangs {
		return err
	}
	if err != nil && !E.IsMulti(err, os.ErrClosed) {
		log.Error(E.Cause(err, "the service did not close properly"))
	}
	return nil
}

var errHangs = E.New("the service does not stop; it is ended")

// await waits for the end of a stop, but not past a further signal to stop, nor for more than 10 s.
func await(ended <-chan error, signals <-chan os.Signal) error {
	patience := time.NewTimer(C.FatalStopTimeout)
	defer patience.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-patience.C:
			return errHangs
		case received := <-signals:
			if received != syscall.SIGHUP {
				return errHangs
			}
		}
	}
}
