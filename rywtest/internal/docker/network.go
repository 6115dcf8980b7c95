//go:build linux || darwin

package docker

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
)

// makeNetwork makes the private network. Only a network whose addresses were
// chosen by its maker lets a container come back under its old one, and only the
// engine knows which are free: it is asked by making a network and removing it.
func (b *Backend) makeNetwork(ctx context.Context) (netip.Prefix, error) {
	const tries = 20
	for try := 1; ; try++ {
		subnet, err := b.freeSubnet(ctx)
		if err != nil {
			return subnet, err
		}
		err = b.createNetwork(ctx, "--subnet="+subnet.String(), b.id)
		if err == nil || !says(err, "overlaps") || try == tries {
			return subnet, err
		}
	}
}

// createNetwork makes a network without a way out.
func (b *Backend) createNetwork(ctx context.Context, args ...string) error {
	_, err := b.do(ctx, slices.Concat([]string{"network", "create", "--internal"}, b.labels(), args)...)
	return err
}

func (b *Backend) freeSubnet(ctx context.Context) (netip.Prefix, error) {
	name := b.id + "-probe"
	if err := b.createNetwork(ctx, name); err != nil {
		return netip.Prefix{}, err
	}
	text, err := b.do(ctx, "network", "inspect", "--format={{(index .IPAM.Config 0).Subnet}}", name)
	if err != nil {
		return netip.Prefix{}, err
	}
	if _, err := b.do(ctx, "network", "rm", name); err != nil {
		return netip.Prefix{}, err
	}
	subnet, err := netip.ParsePrefix(text)
	if err != nil {
		return subnet, fmt.Errorf("the engine's answer: %w", err)
	}
	return subnet, nil
}

// address is the i-th of the private network, from 0. The engine keeps the first
// of the subnet for itself.
func (b *Backend) address(i int) (string, error) {
	addr := b.subnet.Masked().Addr().Next().Next()
	for range i {
		addr = addr.Next()
	}
	if !b.subnet.Contains(addr.Next()) { // the last one is for broadcasts
		return "", fmt.Errorf("network %v has no room for %d servers", b.subnet, i+1)
	}
	return addr.String(), nil
}
