package rywotel_test

import (
	"context"
	"fmt"

	"github.com/gorm-ryw/gorm-ryw/rywotel"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"go.opentelemetry.io/otel/propagation"
)

func ExamplePropagator() {
	// otel.SetTextMapPropagator(propagator)
	propagator := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, rywotel.Propagator{})

	// Where a message is sent, instrumentation does this.
	message := propagation.MapCarrier{}
	ctx := session.NewContext(context.Background(), session.New(token.FromLSN(0x3000060)))
	propagator.Inject(ctx, message)
	fmt.Println(message)

	// And this where it is worked on.
	work := propagator.Extract(context.Background(), message)
	s, ok := session.FromContext(work)
	fmt.Println(s.Token().At(0).Write, ok)
	// Output:
	// map[x-consistency-token:r1.AQQAAAAAAwAAYA]
	// 0/3000060 true
}
