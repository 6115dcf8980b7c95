package rywgrpc

import (
	"context"
	"sync"

	"github.com/gorm-ryw/gorm-ryw/carrier"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// DialOptions returns both client interceptors. A nil c is the zero Carrier.
func DialOptions(c *carrier.Carrier) []grpc.DialOption {
	c = orZero(c)
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(UnaryClientInterceptor(c)), grpc.WithChainStreamInterceptor(StreamClientInterceptor(c)),
	}
}

// UnaryClientInterceptor sends the token of the context's session and has the session
// observe the answer's. A nil c is the zero Carrier.
func UnaryClientInterceptor(c *carrier.Carrier) grpc.UnaryClientInterceptor {
	c = orZero(c)
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		s, ok := session.FromContext(ctx)
		if !ok {
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		var trailer metadata.MD
		err := invoke(send(ctx, c), method, req, reply, cc, append(opts, grpc.Trailer(&trailer))...)
		observe(c, s, trailer)
		return err
	}
}

// StreamClientInterceptor is UnaryClientInterceptor for streams: the session observes
// the header with the first message and the trailer when the stream has ended, which
// is when RecvMsg says so.
func StreamClientInterceptor(c *carrier.Carrier) grpc.StreamClientInterceptor {
	c = orZero(c)
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		s, ok := session.FromContext(ctx)
		if !ok {
			return open(ctx, desc, cc, method, opts...)
		}
		stream, err := open(send(ctx, c), desc, cc, method, opts...)
		if err != nil {
			return nil, err
		}
		return &clientStream{ClientStream: stream, c: c, s: s, single: !desc.ServerStreams}, nil
	}
}

// clientStream has the session observe what comes with a stream.
type clientStream struct {
	grpc.ClientStream
	c      *carrier.Carrier
	s      *session.Session
	single bool // one message is the whole answer
	header sync.Once
}

// RecvMsg implements grpc.ClientStream.
func (s *clientStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err != nil || s.single {
		observe(s.c, s.s, s.Trailer())
		return err
	}
	s.header.Do(func() {
		if md, err := s.Header(); err == nil {
			observe(s.c, s.s, md)
		}
	})
	return nil
}

// send returns the context with the token in its metadata, in place of one that was
// handed through.
func send(ctx context.Context, c *carrier.Carrier) context.Context {
	md, ok := metadata.FromOutgoingContext(ctx) // a copy
	if !ok {
		md = metadata.MD{}
	}
	c.InjectHeaders(ctx, headers(md))
	return metadata.NewOutgoingContext(ctx, md)
}

// observe merges what came back. What cannot be read may have been a write.
func observe(c *carrier.Carrier, s *session.Session, md metadata.MD) {
	if len(md.Get(carrier.Header)) == 0 {
		return
	}
	ctx, err := c.ExtractHeaders(context.Background(), headers(md))
	if err != nil {
		s.MarkWrote(token.Key{})
		return
	}
	s.Observe(carrier.Token(ctx))
}
