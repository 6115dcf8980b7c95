package local

import "os"

// usualParent is the folder for temporary files.
func usualParent() string { return os.TempDir() }
