// Package adminpage is the plugin's page for operators: what the watcher knows of
// each server, the last minutes of it, where reads went and why. It knows nothing of
// the plugin but a View, asks no server anything, and has no way to change anything.
package adminpage
