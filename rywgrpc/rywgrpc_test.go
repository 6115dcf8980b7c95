package rywgrpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/carrier"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

var here = token.Key{System: 11}

func wrote(lsn uint64) token.Token {
	return token.FromEntries(token.Entry{Key: here, Write: token.Position{Timeline: 1, LSN: token.LSN(lsn)}})
}

// handler is what a call does with the session of its context, before its answer and,
// in a stream, behind its first message.
type handler struct {
	before, between func(ctx context.Context, s *session.Session) error
}

func (h *handler) do(ctx context.Context, f func(context.Context, *session.Session) error) error {
	if f == nil {
		return nil
	}
	s, ok := session.FromContext(ctx)
	if !ok {
		return errors.New("no session")
	}
	return f(ctx, s)
}

func unary(srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
	in := &emptypb.Empty{}
	if err := decode(in); err != nil {
		return nil, err
	}
	h := srv.(*handler)
	return intercept(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/test/Unary"}, func(ctx context.Context, _ any) (any, error) {
		return &emptypb.Empty{}, h.do(ctx, h.before)
	})
}

func stream(srv any, s grpc.ServerStream) error {
	h := srv.(*handler)
	if err := s.RecvMsg(&emptypb.Empty{}); err != nil {
		return err
	}
	if err := h.do(s.Context(), h.before); err != nil {
		return err
	}
	if err := s.SendMsg(&emptypb.Empty{}); err != nil {
		return err
	}
	return h.do(s.Context(), h.between)
}

var service = grpc.ServiceDesc{
	ServiceName: "test", HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Unary", Handler: unary}},
	Streams: []grpc.StreamDesc{
		{StreamName: "Down", Handler: stream, ServerStreams: true},
		{StreamName: "Up", Handler: stream, ClientStreams: true},
		{StreamName: "Both", Handler: stream, ServerStreams: true, ClientStreams: true},
	},
}

// dial starts a server on a real socket and connects to it.
func dial(t *testing.T, h *handler, server, client *carrier.Carrier) *grpc.ClientConn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer(ServerOptions(server)...)
	srv.RegisterService(&service, h)
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	conn, err := grpc.NewClient(l.Addr().String(), append(DialOptions(client), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := conn.Close()
		srv.Stop()
		if err := errors.Join(err, <-ended); err != nil {
			t.Error(err)
		}
	})
	return conn
}

// call makes a call of a kind to its end; first is told after the first message.
func call(ctx context.Context, conn *grpc.ClientConn, kind string, first func()) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if kind == "Unary" {
		return conn.Invoke(ctx, "/test/Unary", &emptypb.Empty{}, &emptypb.Empty{})
	}
	desc := grpc.StreamDesc{ServerStreams: kind != "Up", ClientStreams: kind != "Down"}
	s, err := conn.NewStream(ctx, &desc, "/test/"+kind)
	if err != nil {
		return err
	}
	if err := errors.Join(s.SendMsg(&emptypb.Empty{}), s.CloseSend()); err != nil {
		return err
	}
	if err := s.RecvMsg(&emptypb.Empty{}); err != nil {
		return err
	}
	if first != nil {
		first()
	}
	if kind == "Up" {
		return nil
	}
	if err := s.RecvMsg(&emptypb.Empty{}); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

var kinds = []string{"Unary", "Down", "Up", "Both"}

func with(s *session.Session) context.Context {
	return session.NewContext(context.Background(), s)
}

func signer(t *testing.T, id string) *token.Signer {
	t.Helper()
	s, err := token.NewSigner(token.Secret{ID: id, Key: bytes.Repeat([]byte(id), 20)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestATokenGoesThereAndBack(t *testing.T) {
	for name, c := range map[string]*carrier.Carrier{
		"unsigned": {Missing: carrier.MissingRefused}, "signed": {Missing: carrier.MissingRefused, Signer: signer(t, "k1")}, "nil": nil,
	} {
		h := &handler{before: func(_ context.Context, s *session.Session) error {
			if !s.Token().Equal(wrote(50)) {
				return errors.New("have " + s.Token().String())
			}
			s.Observe(wrote(77))
			return nil
		}}
		conn := dial(t, h, c, c)
		for _, kind := range kinds {
			s := session.New(wrote(50))
			if err := call(with(s), conn, kind, nil); err != nil || !s.Token().Equal(wrote(77)) {
				t.Errorf("%s %s: have %s, %v", name, kind, s.Token(), err)
			}
		}
	}
}

// A handler that fails may have written, and has read.
func TestAFailedCallAnswers(t *testing.T) {
	h := &handler{before: func(_ context.Context, s *session.Session) error {
		s.Observe(wrote(77))
		return status.Error(codes.AlreadyExists, "duplicate key")
	}}
	conn := dial(t, h, nil, nil)
	for _, kind := range kinds {
		s := session.New()
		if err := call(with(s), conn, kind, nil); status.Code(err) != codes.AlreadyExists || !s.Token().Equal(wrote(77)) {
			t.Errorf("%s: have %s, %v", kind, s.Token(), err)
		}
	}
}

// Whoever uses a stream's first message is covered by then, and by the end whoever
// waited for that.
func TestStreamsAnswerTwice(t *testing.T) {
	goOn := make(chan struct{})
	h := &handler{
		before: func(_ context.Context, s *session.Session) error { s.Observe(wrote(70)); s.BeginWrite(); return nil },
		between: func(_ context.Context, s *session.Session) error {
			<-goOn
			s.EndWrite()
			s.Observe(wrote(77))
			return nil
		},
	}
	conn := dial(t, h, nil, nil)
	for _, kind := range []string{"Down", "Both"} {
		s := session.New()
		err := call(with(s), conn, kind, func() {
			e, _ := s.Token().Entry(here)
			any, _ := s.Token().Entry(token.Key{})
			if e.Write.LSN != 70 || !any.Wrote {
				t.Errorf("%s, first message: have %+v, open transaction marked %t", kind, e, any.Wrote)
			}
			goOn <- struct{}{}
		})
		if e, _ := s.Token().Entry(here); err != nil || e.Write.LSN != 77 {
			t.Errorf("%s, end: have %+v, %v", kind, e, err)
		}
	}
}

// The one message of an answer may be sent before the last write.
func TestAnUploadAnswersAtItsEnd(t *testing.T) {
	h := &handler{between: func(_ context.Context, s *session.Session) error { s.Observe(wrote(77)); return nil }}
	s := session.New()
	if err := call(with(s), dial(t, h, nil, nil), "Up", nil); err != nil || !s.Token().Equal(wrote(77)) {
		t.Errorf("have %s, %v", s.Token(), err)
	}
}

func TestACallWithoutStatementsAnswersNothing(t *testing.T) {
	conn := dial(t, &handler{}, nil, nil)
	var trailer metadata.MD
	err := conn.Invoke(with(session.New(wrote(7))), "/test/Unary", &emptypb.Empty{}, &emptypb.Empty{}, grpc.Trailer(&trailer))
	if err != nil || len(trailer.Get(carrier.Header)) != 0 {
		t.Errorf("have %v, %v", trailer, err)
	}
}

func TestCallsWithoutAToken(t *testing.T) {
	for missing, want := range map[carrier.Missing]codes.Code{
		carrier.MissingStrong: codes.OK, carrier.MissingStale: codes.OK, carrier.MissingRefused: codes.FailedPrecondition,
	} {
		c := &carrier.Carrier{Missing: missing}
		conn := dial(t, &handler{before: func(_ context.Context, s *session.Session) error {
			var n session.Need
			if s.Need(&n, here, time.Time{}); n.Marked != (missing == carrier.MissingStrong) {
				return status.Error(codes.Internal, "the mark is wrong")
			}
			return nil
		}}, c, nil)
		for _, kind := range kinds {
			if err := call(context.Background(), conn, kind, nil); status.Code(err) != want {
				t.Errorf("%d %s: have %v, want %s", missing, kind, err, want)
			}
		}
		if have, _ := c.Counts(); have != int64(len(kinds)) {
			t.Errorf("%d: have %d counted", missing, have)
		}
	}
}

func TestInvalidTokens(t *testing.T) {
	c := &carrier.Carrier{Signer: signer(t, "k1")}
	conn := dial(t, &handler{}, c, nil) // whose client signs nothing
	for _, kind := range kinds {
		err := call(with(session.New(wrote(50))), conn, kind, nil)
		if status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != "consistency token invalid" {
			t.Errorf("%s: have %v", kind, err)
		}
	}
	// An answer that cannot be read may have been a write.
	conn = dial(t, &handler{before: func(_ context.Context, s *session.Session) error { s.Observe(wrote(77)); return nil }}, nil,
		&carrier.Carrier{Signer: signer(t, "k1")})
	s := session.New()
	if err := call(with(s), conn, "Unary", nil); err != nil {
		t.Fatal(err)
	}
	if e, _ := s.Token().Entry(token.Key{}); !e.Wrote {
		t.Errorf("have %s", s.Token())
	}
}

// What a handler was called with is not handed through in the place of its own.
func TestTheSessionWinsOverForwardedMetadata(t *testing.T) {
	conn := dial(t, &handler{before: func(_ context.Context, s *session.Session) error {
		if !s.Token().Equal(wrote(50)) {
			return errors.New("have " + s.Token().String())
		}
		return nil
	}}, nil, nil)
	ctx := metadata.AppendToOutgoingContext(with(session.New(wrote(50))), carrier.Header, wrote(7).String(), "other", "x")
	if err := call(ctx, conn, "Unary", nil); err != nil {
		t.Error(err)
	}
	if md, _ := metadata.FromOutgoingContext(ctx); md.Get(carrier.Header)[0] != wrote(7).String() {
		t.Error("the caller's metadata was changed")
	}
}
