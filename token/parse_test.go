package token

import (
	"encoding/base64"
	"encoding/hex"
	"runtime"
	"strings"
	"testing"
)

func TestParseBareLSN(t *testing.T) {
	for _, text := range []string{"A2C/FE118820", "a2c/fe118820", "00000A2C/FE118820"} {
		tok, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		wantEntry(t, tok, Entry{Write: at(0, 0xA2CFE118820)})
	}
}

func TestParseIsStrict(t *testing.T) {
	usual := "r1.AS1gAQIDBAUGBwMACiz-EYggAaGGlbuYAw"
	for name, c := range map[string]struct{ text, part string }{
		"empty":             {"", "empty text"},
		"blank":             {" ", `want the form r1.`},
		"space before":      {" " + usual, `want the form r1.`},
		"space after":       {usual + " ", `with " "`},
		"line break after":  {usual + "\n", "line break"},
		"line break inside": {usual[:9] + "\r\n" + usual[9:], "byte 9 is a line break"},
		"padding":           {"r1.AUAB=", "base64url"},
		"base64":            {"r1.AS+/", `byte 5 with "+/"`},
		"bits to spare":     {"r1.AQQAAAAAAwAAYR", "base64url"},
		"upper case":        {"R1." + usual[3:], "want the form r1."},
		"no version":        {usual[3:], "want the form r1."},
		"other version":     {"r2." + usual[3:], "another version"},
		"version alone":     {"r1.", "empty payload"},
		"signed":            {usual + ".k1.c2lnbmF0dXJl", "no signatures"},
		"half signed":       {usual + ".k1", "3 segments"},
		"more than signed":  {usual + ".a.b.c", "5 segments"},
		"too long":          {"r1." + strings.Repeat("A", 1022), "1025 bytes"},
		"bare zero":         {"0/0", "no server gets there"},
		"bare too wide":     {"1000000/0", "no server gets there"},
		"bare and more":     {"0/1;drop", "hex digits"},
		"hostile":           {"\x1b]0;x\a\n2026 ERROR", "want the form"},
		"hostile LSN":       {"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00/", "hex digits"},
		"hostile unicode":   {"\U0010FFFF\U0010FFFF\U0010FFFF\U0010FFFF", "want the form"},
		"hostile payload":   {"r1.\x1b[31m\x00\x00\x00\x00\x00\x00\x00\x00\x00", "base64url"},
	} {
		t.Run(name, func(t *testing.T) {
			tok, err := Parse(c.text)
			wantInvalid(t, err, c.part)
			if !tok.IsZero() {
				t.Error("a token beside an error")
			}
		})
	}
	if _, err := Parse(usual); err != nil {
		t.Errorf("what the cases start from: %v", err)
	}
}

const (
	hexSystem = "0000000000000007"
	hexName   = "0000000000000005"
	hexLSN    = "00000000000001"
)

// Every payload here differs in one point from one that String makes.
func TestPayloadIsCanonical(t *testing.T) {
	for name, c := range map[string]struct{ payload, part string }{
		"reserved head bit":       {"4140", "unknown bits in head"},
		"no entries":              {"00", "0 entries"},
		"no entries but others":   {"20", "0 entries"},
		"too many entries":        {"11" + strings.Repeat("40", 17), "17 entries"},
		"others beside few":       {"2140", "dropped from 1"},
		"fewer than said":         {"0240", "entry 2, payload byte 2: flags is cut off"},
		"more than said":          {"014040", "1 bytes after"},
		"unknown flag":            {"01" + "8010", "flags is out of range"},
		"long flags":              {"01" + "c000", "shortest form"},
		"endless flags":           {"01" + "ffffffffffffffffffff01", "out of range"},
		"system cut off":          {"01" + "41" + "00000007", "system is cut off"},
		"system zero":             {"01" + "41" + "0000000000000000", "system is 0"},
		"name zero":               {"01" + "42" + "0000000000000000", "name is 0"},
		"write zero":              {"01" + "04" + "01" + "00000000000000", "LSN of write is 0"},
		"long timeline":           {"01" + "04" + "8100" + hexLSN, "timeline of write is not in its shortest form"},
		"timeline too wide":       {"01" + "04" + "80808001" + hexLSN, "timeline of write is out of range"},
		"LSN cut off":             {"01" + "04" + "01" + "0000", "LSN of write is cut off"},
		"former without write":    {"01" + "8004" + "01" + hexLSN, "nothing but a key"},
		"former not older":        {"01" + "8404" + "01" + hexLSN + "01" + hexLSN, "older timeline"},
		"near without write":      {"01" + "08" + "02", "floor"},
		"near beside bare":        {"01" + "0c" + "00" + hexLSN + "02", "floor"},
		"near below zero":         {"01" + "0c" + "01" + hexLSN + "01", "floor"},
		"near too wide":           {"01" + "0c" + "01" + "ffffffffffffff" + "02", "floor"},
		"long near":               {"01" + "0c" + "01" + hexLSN + "8200", "shortest form"},
		"near and far":            {"01" + "1c" + "01" + hexLSN + "02" + "02" + hexLSN, "floor"},
		"far on same timeline":    {"01" + "14" + "01" + hexLSN + "01" + hexLSN, "floor"},
		"far on no timeline":      {"01" + "14" + "01" + hexLSN + "00" + hexLSN, "floor"},
		"bare floor":              {"01" + "10" + "00" + hexLSN, "floor"},
		"minted zero":             {"01" + "60" + "00", "minted is 0"},
		"minted too late":         {"01" + "60" + "80808080808001", "minted is out of range"},
		"long minted":             {"01" + "60" + "8500", "shortest form"},
		"only minted":             {"01" + "20" + "05", "nothing but a key"},
		"only a key":              {"01" + "01" + hexSystem, "nothing but a key"},
		"no nodes":                {"01" + "8002" + "00", "number of nodes is 0"},
		"too many nodes":          {"01" + "8002" + "09" + nodesHex(9), "9 nodes"},
		"nodes cut off":           {"01" + "8002" + "03" + nodesHex(2), "node is cut off"},
		"node zero":               {"01" + "8002" + "01" + "0000000000000000", "node is 0"},
		"node twice":              {"01" + "8002" + "02" + nodesHex(1) + nodesHex(1), "ascending"},
		"nodes unsorted":          {"01" + "8002" + "02" + "0000000000000002" + nodesHex(1), "ascending"},
		"nodes beside primary":    {"01" + "8003" + "01" + nodesHex(1), "seen primary"},
		"same key twice":          {"02" + "40" + "40", "key"},
		"keys unsorted":           {"02" + "41" + hexSystem + "40", "key"},
		"covered by no position":  {"02" + "40" + "c108" + hexSystem, "covers"},
		"covered but not marked":  {"02" + "04" + "00" + hexLSN + "8508" + hexSystem + "01" + hexLSN, "cover"},
		"covered but not broader": {"02" + "42" + hexName + "8508" + hexSystem + "01" + hexLSN, "cover"},
		"only minted and others":  {"30" + "20" + "05" + others(15), "nothing but a key"},
		"crowded former":          {"07" + "8404" + "02" + hexLSN + "01" + hexLSN + others(6), "no room"},
		"crowded nodes":           {"07" + "8002" + "01" + nodesHex(1) + others(6), "no room"},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := hex.DecodeString(c.payload)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Parse("r1." + base64.RawURLEncoding.EncodeToString(raw))
			wantInvalid(t, err, c.part)
		})
	}
}

func nodesHex(n int) (text string) {
	for i := range n {
		text += "000000000000000" + string("0123456789"[i+1])
	}
	return text
}

// others returns n correct entries with a mark and keys in ascending order.
func others(n int) (text string) {
	for i := range n {
		text += "41" + "01000000000000" + hex.EncodeToString([]byte{byte(i)})
	}
	return text
}

// The helper of the cases above makes entries that are refused for no other
// reason.
func TestPayloadOfOthers(t *testing.T) {
	raw, _ := hex.DecodeString("10" + others(16))
	if tok, err := decode(raw); err != nil || tok.Len() != 16 {
		t.Errorf("%v: %s", err, describe(tok))
	}
}

func TestEveryCutIsRefused(t *testing.T) {
	for _, tok := range []Token{widest(1), widest(16), resolved(full)} {
		payload := tok.appendPayload(nil)
		for n := range payload {
			if _, err := decode(payload[:n]); err == nil {
				t.Errorf("%d of %d bytes are a token", n, len(payload))
			}
		}
	}
}

// Foreign text must not make a server allocate more than a token is worth.
func TestParseAllocatesLittle(t *testing.T) {
	for _, text := range []string{
		"r1.EA", "r1.MA", strings.Repeat("r", 1<<20), "r1." + strings.Repeat(".", 1<<20),
		"r1." + strings.Repeat("_", MaxText-3), widest(16).String(), widest(6).String(), "0/" + strings.Repeat("0", 1000),
	} {
		const runs = 50
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range runs {
			_, _ = Parse(text)
		}
		runtime.ReadMemStats(&after)
		if n := (after.TotalAlloc - before.TotalAlloc) / runs; n > 4096 {
			t.Errorf("%d bytes allocated for a text of %d", n, len(text))
		}
	}
}
