package history_test

import (
	"bytes"
	"fmt"

	"github.com/gorm-ryw/gorm-ryw/suite_test/history"
)

// Two processes record, one judges.
func Example() {
	web, job := history.NewRecorder("web-1"), history.NewRecorder("job-7")
	alice, bob := web.Session("alice"), job.Session("bob")

	write := alice.Write("cart", history.VersionUnknown)
	write.End(history.Answer{Outcome: history.OK, Version: 5}) // the row said so

	mark := alice.Mark().String() // travels beside the token
	if err := bob.Receive(mark); err != nil {
		fmt.Println(err)
	}
	read := bob.Read("cart")
	read.End(history.Answer{Outcome: history.OK, Version: 0, Node: "r2", Role: history.Replica})

	var file bytes.Buffer
	for _, rec := range []*history.Recorder{web, job} {
		if err := history.Encode(&file, rec.History()); err != nil {
			fmt.Println(err)
		}
	}
	h, err := history.Decode(&file)
	r := history.Check(h, history.Options{})
	fmt.Println(err, r.Ok(), len(r.ReadYourWrites), r.ReadYourWrites[0].Op.Mark())
	// Output: <nil> false 1 bob@2
}
