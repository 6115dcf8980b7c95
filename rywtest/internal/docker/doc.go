// Package docker runs the servers of a cluster in containers of a Docker engine on
// this machine: one container for each server, with an address of its own on a
// private network of the cluster.
//
// A container's first process only waits; the server is a second program in it,
// started by "docker exec". So programs can work on the data directory while the
// server is stopped, and a stopped server's address refuses connections instead of
// being gone. Killing is by the engine ("docker kill" ends everything in the
// container at once), freezing too ("docker pause"), and a partition disconnects
// the container from the private network.
//
// The engine is driven by its command line, docker, which is documented, stable and
// follows the user's contexts. Client libraries would put about twenty further
// modules, telemetry among them, into the module graph of every program that tests
// with this kit.
package docker
