package policy_test

import (
	"fmt"

	"github.com/gorm-ryw/gorm-ryw/policy"
)

// first is a balancer that prefers the replica that was given first, as where the
// others are in another region.
type first struct{}

func (first) Pick(replicas []*policy.Replica) *policy.Replica { return replicas[0] }

// Only replicas that may serve the read are offered.
func ExampleBalancer() {
	near, far := &policy.Replica{}, &policy.Replica{}
	near.Begin() // a read is under way there
	replicas := []*policy.Replica{near, far}

	fmt.Println(first{}.Pick(replicas) == near)
	fmt.Println(policy.LeastBusy().Pick(replicas) == far)
	// Output:
	// true
	// true
}

// Of several hints on one query the strongest counts.
func ExampleHint_And() {
	stale := &policy.Hint{Level: policy.StaleOK}
	both := stale.And(&policy.Hint{Level: policy.Strong})
	fmt.Println(stale.Level, both.Level)
	// Output:
	// stale ok strong
}
