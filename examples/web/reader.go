package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"

	"github.com/gorm-ryw/gorm-ryw/carrier"
	"github.com/gorm-ryw/gorm-ryw/rywgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// reader is a second service: it reads notes for others, over gRPC.
type reader struct {
	config
	store *store
}

func runReader(ctx context.Context, c config) (err error) {
	s, err := openStore(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var opts []grpc.ServerOption
	if c.drop != "reader" {
		opts = rywgrpc.ServerOptions(&carrier.Carrier{Missing: carrier.MissingStale}) // so that a dropped token shows
	}
	srv := grpc.NewServer(opts...)
	srv.RegisterService(&readerService, &reader{config: c, store: s})
	fmt.Println(l.Addr()) // for the parent
	stop := context.AfterFunc(ctx, srv.Stop)
	defer stop()
	return srv.Serve(l)
}

// readerService is what protoc would make of
//
//	service Reader { rpc Read(google.protobuf.Int64Value) returns (google.protobuf.BytesValue); }
var readerService = grpc.ServiceDesc{
	ServiceName: "Reader", HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Read", Handler: readHandler}},
}

//nolint:revive // the order of the arguments is gRPC's
func readHandler(srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
	in := &wrapperspb.Int64Value{}
	if err := decode(in); err != nil {
		return nil, err
	}
	read := func(ctx context.Context, _ any) (any, error) { return srv.(*reader).read(ctx, in.Value) }
	if intercept == nil {
		return read(ctx, in)
	}
	return intercept(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/Reader/Read"}, read)
}

func (r *reader) read(ctx context.Context, id int64) (*wrapperspb.BytesValue, error) {
	v, err := r.store.load(ctx, id)
	if err != nil {
		return nil, err
	}
	v.Process = r.name
	raw, err := json.Marshal(v)
	return wrapperspb.Bytes(raw), err
}

// dialReader connects to the reader; nobody is asked before the first call.
func dialReader(c config) (*grpc.ClientConn, error) {
	opts := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	if c.drop != "client" {
		opts = append(opts, rywgrpc.DialOptions(nil)...)
	}
	return grpc.NewClient(c.reader, opts...)
}

// askReader returns what the reader shows of a note.
func askReader(ctx context.Context, conn *grpc.ClientConn, id int64) (v seen, err error) {
	out := &wrapperspb.BytesValue{}
	if err := conn.Invoke(ctx, "/Reader/Read", wrapperspb.Int64(id), out); err != nil {
		return v, err
	}
	return v, json.Unmarshal(out.Value, &v)
}
