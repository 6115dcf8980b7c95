package rywgrpc_test

import (
	"context"
	"fmt"
	"net"

	"github.com/gorm-ryw/gorm-ryw/rywgrpc"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/test/bufconn"
)

// service is any service of yours.
type service struct {
	grpc_health_v1.UnimplementedHealthServer
}

// Check writes something: db.WithContext(ctx).Create(…).
func (service) Check(ctx context.Context, _ *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	s, _ := session.FromContext(ctx)
	s.MarkWrote(token.Key{})
	return &grpc_health_v1.HealthCheckResponse{}, nil
}

func Example() {
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer(rywgrpc.ServerOptions(nil)...)
	grpc_health_v1.RegisterHealthServer(server, service{})
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	conn, err := grpc.NewClient("passthrough:shop", append(rywgrpc.DialOptions(nil),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
	)...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conn.Close() }()

	s := session.New()
	ctx := session.NewContext(context.Background(), s)
	_, err = grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	fmt.Println("the caller's session knows of the write:", s.Token().At(0).Wrote, err)
	// Output:
	// the caller's session knows of the write: true <nil>
}
