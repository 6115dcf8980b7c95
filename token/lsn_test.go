package token

import (
	"strings"
	"testing"
)

func TestLSNText(t *testing.T) {
	for lsn, want := range map[LSN]string{
		0:                  "0/0",
		1:                  "0/1",
		0x3000060:          "0/3000060",
		0x1_0000_0000:      "1/0",
		0xA2C_FE118820:     "A2C/FE118820",
		0xFFFFFFFFFFFFFFFF: "FFFFFFFF/FFFFFFFF",
	} {
		if lsn.String() != want {
			t.Errorf("LSN %#x prints as %q, want %q", uint64(lsn), lsn.String(), want)
		}
		if got, err := ParseLSN(want); got != lsn || err != nil {
			t.Errorf("ParseLSN(%q) = %v, %v", want, got, err)
		}
	}
}

func TestParseLSNTakesWhatServersPrint(t *testing.T) {
	for _, text := range []string{"a2c/fe118820", "A2C/FE118820", "00000A2C/FE118820"} {
		if got, err := ParseLSN(text); got != 0xA2CFE118820 || err != nil {
			t.Errorf("ParseLSN(%q) = %v, %v", text, got, err)
		}
	}
	if got, err := ParseLSN("0/03000060"); got != 0x3000060 || err != nil {
		t.Errorf("padded: %v, %v", got, err)
	}
}

func TestParseLSNIsStrict(t *testing.T) {
	for _, text := range []string{
		"", "/", "0", "0/", "/0", "0/0/0", " 0/1", "0/1 ", "0/1\n", "+0/1", "0/-1", "0x1/1", "0/1_0", "G/0",
		"000000000/1", "0/000000001", "1/100000000", "０/1", strings.Repeat("A", 5000) + "/1", "\x00/\x1b[31m",
	} {
		got, err := ParseLSN(text)
		wantInvalid(t, err, "LSN")
		if got != 0 {
			t.Errorf("ParseLSN(%q) = %v beside an error", text, got)
		}
	}
}
