package local

import (
	"os"
	"syscall"
)

const (
	memoryDir   = "/dev/shm"
	memoryMagic = 0x01021994 // TMPFS_MAGIC of linux/magic.h
	memoryRoom  = 4 << 30
)

// usualParent is TMPDIR if it is set, else the memory file system if it has plenty
// of room, else /tmp. A cluster is thousands of small files that are made and
// removed again, which a disk notices and memory does not.
func usualParent() string {
	if os.Getenv("TMPDIR") == "" && roomy(memoryDir) {
		return memoryDir
	}
	return os.TempDir()
}

func roomy(dir string) bool {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil || fs.Type != memoryMagic {
		return false
	}
	return fs.Bavail*uint64(fs.Bsize) >= memoryRoom
}
