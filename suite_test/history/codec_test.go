package history

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

func TestCodecKeepsEverything(t *testing.T) {
	h := simulate(7, 300, false, true)
	h.Initial = map[string]int64{"k": 3, "l": 0}
	h.Ops = append(h.Ops, Op{
		Kind: Read, Process: "p", Session: "s", Seq: 1, Clock: "c", Start: 1, End: 2, Key: "k",
		Answer: Answer{OK, 7, "n", Replica, 3, 0xA2C_FE118820, true, true}, From: Mark{"x", 2},
	})
	var text bytes.Buffer
	if err := Encode(&text, h); err != nil {
		t.Fatal(err)
	}
	if len(h.Promotions) == 0 || !strings.Contains(text.String(), `"A2C/FE118820"`) {
		t.Error("the test lacks a promotion or a position")
	}
	back, err := Decode(&text)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back, h) {
		t.Error("the decoded history differs")
	}
}

const okRead = `{"kind":"read","session":"a","seq":1,"start":1,"end":2,"key":"k","outcome":"ok"}`

func TestDecodeIsStrict(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"not JSON":         {okRead + "\n{", "line 2"},
		"unknown kind":     {`{"kind":"delete"}`, `"delete"`},
		"no kind":          {`{"session":"a"}`, "kind"},
		"unknown field":    {`{"kind":"read","sesion":"a"}`, "sesion"},
		"second record":    {okRead + okRead, "follows"},
		"outcome":          {`{"kind":"read","outcome":"fine"}`, `"fine"`},
		"role":             {`{"kind":"read","role":"leader"}`, `"leader"`},
		"position":         {`{"kind":"write","position":"12"}`, `"12"`},
		"mark":             {`{"kind":"receive","from":"alice"}`, `"alice"`},
		"negative mark":    {`{"kind":"receive","from":"alice@-1"}`, `"alice@-1"`},
		"op's field":       {`{"kind":"initial","key":"k","version":1,"seq":1}`, "seq"},
		"promotion's":      {`{"kind":"promotion","at":1,"key":"k"}`, "key"},
		"initial twice":    {`{"kind":"initial","key":"k","version":1}` + "\n" + `{"kind":"initial","key":"k","version":2}`, "line 2"},
		"negative initial": {`{"kind":"initial","key":"k","version":-1}`, "-1"},
		"long line":        {okRead + "\n" + strings.Repeat(" ", maxLine+1), "line 2"},
		"torn line":        {okRead[:40], "line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := Decode(strings.NewReader(tc.text))
			if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("have %v and %+v, want ErrFormat with %q", err, h, tc.want)
			}
		})
	}
}

func TestDecodeAcceptsBlankLinesAndAnyFieldOrder(t *testing.T) {
	h, err := Decode(strings.NewReader("\n" + okRead + "\r\n\n" + ` {"session":"a","kind":"write"} `))
	if err != nil || len(h.Ops) != 2 || h.Ops[1].Kind != Write {
		t.Errorf("have %+v and %v", h, err)
	}
}

func TestIOErrorsAreNotFormatErrors(t *testing.T) {
	_, err := Decode(iotest.ErrReader(io.ErrUnexpectedEOF))
	if !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, ErrFormat) {
		t.Errorf("reading: have %v", err)
	}
	if err := Encode(brokenWriter{}, decodeFile(t, "legal.jsonl")); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("writing: have %v", err)
	}
	if err := Encode(io.Discard, History{Ops: []Op{{Session: "a", Seq: 3}}}); err == nil || !strings.Contains(err.Error(), "a@3") {
		t.Errorf("an operation without a kind: have %v", err)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestMerge(t *testing.T) {
	a, b := decodeFile(t, "legal.jsonl"), simulate(1, 200, false, true)
	all, err := Merge(a, b, a)
	if err != nil {
		t.Fatal(err)
	}
	if len(all.Ops) != 2*len(a.Ops)+len(b.Ops) || len(all.Promotions) != len(b.Promotions) || all.Initial["cart"] != 4 {
		t.Errorf("have %d operations, %d promotions, %v", len(all.Ops), len(all.Promotions), all.Initial)
	}
	if _, err := Merge(a, History{Initial: map[string]int64{"cart": 5}}); err == nil {
		t.Error("two initial versions of one key were accepted")
	}
}

// Whatever the text is: no panic, neither in decoding nor in judging, and what
// was understood survives the way there and back.
func FuzzDecode(f *testing.F) {
	for _, name := range []string{"garbage", "simulated"} {
		h := History{Ops: garbage(5).Ops[:12]}
		if name == "simulated" {
			h = simulate(7, 12, false, true)
		}
		h.Initial = map[string]int64{"k": 3}
		var text bytes.Buffer
		if err := Encode(&text, h); err != nil {
			f.Fatal(err)
		}
		f.Add(text.Bytes())
	}
	f.Add([]byte(okRead + "\n{\"kind\":\"receive\",\"session\":\"a\",\"seq\":2,\"start\":9,\"from\":\"a@7\"}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := Decode(bytes.NewReader(text))
		if err != nil {
			return
		}
		r := Check(h, Options{})
		if r.Ops != len(h.Ops) || r.String() == "" {
			t.Errorf("have %d operations judged, want %d", r.Ops, len(h.Ops))
		}
		Render(h.Ops)
		var again bytes.Buffer
		if err := Encode(&again, h); err != nil {
			t.Fatalf("decoded, but not encodable: %v", err)
		}
		back, err := Decode(&again)
		if err != nil || !reflect.DeepEqual(back, h) {
			t.Errorf("there and back: %v", err)
		}
	})
}
