package suite_test

import (
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The README", func() {
	It("shows the timelines as the history checker draws them", func() {
		readme, err := os.ReadFile("../README.md")
		Expect(err).NotTo(HaveOccurred())
		for _, name := range []string{"legal.txt", "illegal.txt"} {
			timeline, err := os.ReadFile("history/testdata/" + name)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(readme)).To(ContainSubstring(string(timeline)), name)
		}
	})
})
