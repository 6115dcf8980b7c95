package rywgrpc

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gorm-ryw/gorm-ryw/carrier"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// headers is metadata as a carrier wants it.
type headers metadata.MD

// Get returns the first value of a key, empty if there is none.
func (h headers) Get(key string) string {
	if all := h.Values(key); len(all) > 0 {
		return all[0]
	}
	return ""
}

// Values returns all values of a key.
func (h headers) Values(key string) []string { return metadata.MD(h).Get(key) }

// Set replaces the values of a key.
func (h headers) Set(key, value string) { metadata.MD(h).Set(key, value) }

// ServerOptions returns both server interceptors, chained after what the server has.
// A nil c is the zero Carrier.
func ServerOptions(c *carrier.Carrier) []grpc.ServerOption {
	c = orZero(c)
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(UnaryServerInterceptor(c)), grpc.ChainStreamInterceptor(StreamServerInterceptor(c)),
	}
}

func orZero(c *carrier.Carrier) *carrier.Carrier {
	if c == nil {
		return &carrier.Carrier{}
	}
	return c
}

// UnaryServerInterceptor gives each call a session and answers with its token. A nil
// c is the zero Carrier.
func UnaryServerInterceptor(c *carrier.Carrier) grpc.UnaryServerInterceptor {
	c = orZero(c)
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		ctx, watch, err := receive(ctx, c)
		if err != nil {
			return nil, err
		}
		defer func() { // a handler that panics may have been recovered further out
			if md, ok := answer(ctx, c, watch); ok {
				_ = grpc.SetTrailer(ctx, md) // fails only where there is no call
			}
		}()
		return handle(ctx, req)
	}
}

// StreamServerInterceptor is UnaryServerInterceptor for streams.
func StreamServerInterceptor(c *carrier.Carrier) grpc.StreamServerInterceptor {
	c = orZero(c)
	return func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		ctx, watch, err := receive(stream.Context(), c)
		if err != nil {
			return err
		}
		s := &serverStream{ServerStream: stream, ctx: ctx, c: c, watch: watch}
		defer func() {
			if md, ok := answer(ctx, c, watch); ok {
				stream.SetTrailer(md)
			}
		}()
		return handle(srv, s)
	}
}

// serverStream sends the token of what was done so far with the header.
type serverStream struct {
	grpc.ServerStream
	ctx    context.Context
	c      *carrier.Carrier
	watch  session.Watch
	header sync.Once
}

// Context returns the context with the session.
func (s *serverStream) Context() context.Context { return s.ctx }

// SendHeader implements grpc.ServerStream.
func (s *serverStream) SendHeader(md metadata.MD) error {
	s.setHeader()
	return s.ServerStream.SendHeader(md)
}

// SendMsg implements grpc.ServerStream.
func (s *serverStream) SendMsg(m any) error {
	s.setHeader()
	return s.ServerStream.SendMsg(m)
}

func (s *serverStream) setHeader() {
	s.header.Do(func() {
		if md, ok := answer(s.ctx, s.c, s.watch); ok {
			_ = s.SetHeader(md) // fails only if the header was sent, which was by somebody else then
		}
	})
}

// receive begins the session of a call.
func receive(ctx context.Context, c *carrier.Carrier) (context.Context, session.Watch, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	ctx, err := c.ExtractHeaders(ctx, headers(md))
	switch {
	case errors.Is(err, carrier.ErrMissing):
		return nil, session.Watch{}, status.Error(codes.FailedPrecondition, "consistency token missing")
	case err != nil:
		return nil, session.Watch{}, status.Error(codes.InvalidArgument, "consistency token invalid")
	}
	s, _ := session.FromContext(ctx)
	return ctx, s.Watch(), nil
}

// answer returns what a call has to say, if anything.
func answer(ctx context.Context, c *carrier.Carrier, watch session.Watch) (metadata.MD, bool) {
	did := watch.Changes()
	if !did.Wrote && !did.Read && !did.Open {
		return nil, false
	}
	if did.Open { // what it will have committed has no position yet
		did.Token = did.Token.Mark(token.Key{}, token.Marks{Wrote: true}, time.Now())
	}
	md := metadata.MD{}
	c.InjectHeaders(carrier.Resume(ctx, did.Token), headers(md))
	return md, true
}
