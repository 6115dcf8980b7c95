package local

import "os"

// tempParent is where clusters live.
func tempParent() string { return os.TempDir() }
