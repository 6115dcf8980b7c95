//go:build !linux

package main

func parentMain() int { return 1 }
