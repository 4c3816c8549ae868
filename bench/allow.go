package main

import (
	"context"
	"fmt"
	"net"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
)

// allowEverything is the word that makes the benchmark's own program the server to compare with.
const allowEverything = "allow-everything"

// allowServer is what a door costs that checks nothing: generated code and grpc-go as they come.
type allowServer struct {
	authv3.UnimplementedAuthorizationServer
}

// Check allows.
func (allowServer) Check(context.Context, *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	return &authv3.CheckResponse{
		Status:       &rpcstatus.Status{},
		HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{}},
	}, nil
}

func serveAllow(ctx context.Context, socket string) error {
	l, err := new(net.ListenConfig).Listen(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := grpc.NewServer()
	authv3.RegisterAuthorizationServer(server, allowServer{})
	defer context.AfterFunc(ctx, server.Stop)()
	return server.Serve(l)
}
