// Package frameworks shows rywhttp under chi, gin and echo. Each example is a test
// that runs a real server of that framework.
package frameworks
