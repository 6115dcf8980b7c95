package sysid

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"
)

// control is a made-up control file whose structure has a length.
func control(length int) []byte {
	data := bytes.Repeat([]byte{7}, 1024)
	sum := crc32.Checksum(data[:length], crc32.MakeTable(crc32.Castagnoli))
	binary.NativeEndian.PutUint32(data[length:], sum)
	return data
}

func TestControlFindsTheEndAndTheNewChecksum(t *testing.T) {
	for _, length := range []int{128, 288, 292, 512} {
		data, before := control(length), control(length)
		crc, at, err := Control(data, 42)
		if err != nil || at != length {
			t.Fatalf("have end %d (%v), want %d", at, err, length)
		}
		if id := binary.NativeEndian.Uint64(data); id != 42 {
			t.Errorf("have identifier %d, want 42", id)
		}
		if want := crc32.Checksum(data[:length], crc32.MakeTable(crc32.Castagnoli)); crc != want {
			t.Errorf("have checksum %x, want %x", crc, want)
		}
		if !bytes.Equal(data[8:], before[8:]) {
			t.Error("more than the identifier has changed")
		}
	}
}

func TestControlRefusesWhatIsNoControlFile(t *testing.T) {
	for _, data := range [][]byte{nil, make([]byte, 100), bytes.Repeat([]byte{1}, 1024), control(124), control(516)} {
		if _, at, err := Control(data, 42); err == nil {
			t.Errorf("found an end at %d in %d bytes without one", at, len(data))
		}
	}
}

func TestNewDiffers(t *testing.T) {
	if a, b := New(), New(); a == b {
		t.Errorf("have %d twice", a)
	}
}
