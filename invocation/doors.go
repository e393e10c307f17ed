package invocation

import (
	"context"
	"errors"
	"sync"
)

// Doors are a gate and its front doors, started and stopped as one.
type Doors struct {
	Gate *Gate
	GRPC *GRPCServer
	HTTP *HTTPServer
}

// Start listens on every front door, or on none: what was opened before one
// that fails is closed again. The gate stays shut until [Gate.Open], so until
// then callers are told that the node is not ready. The error is [ErrListen].
func (d *Doors) Start(ctx context.Context) error {
	if err := d.GRPC.Start(ctx); err != nil {
		return err
	}
	if err := d.HTTP.Start(ctx); err != nil {
		return errors.Join(err, d.GRPC.Stop(ctx))
	}
	return nil
}

// Stop closes all front doors at the same time, gracefully until ctx ends and
// by force after that, and then the gate. Errors: [ErrForced], and that of
// [Gate.Close], joined. It may be called again.
func (d *Doors) Stop(ctx context.Context) error {
	var grpcErr, httpErr error
	var both sync.WaitGroup
	both.Go(func() { grpcErr = d.GRPC.Stop(ctx) })
	both.Go(func() { httpErr = d.HTTP.Stop(ctx) })
	both.Wait()
	return errors.Join(grpcErr, httpErr, d.Gate.Close(ctx))
}
