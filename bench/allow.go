package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

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

func serveAllow(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New(allowEverything + " takes the path of a socket")
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", args[0])
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := grpc.NewServer()
	authv3.RegisterAuthorizationServer(server, allowServer{})
	defer context.AfterFunc(ctx, server.Stop)()
	return server.Serve(l)
}

// startAllow runs it as a process of its own.
func (f *fleet) startAllow(ctx context.Context, socket string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return f.start(ctx, self, allowEverything, socket)
}
