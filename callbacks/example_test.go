package callbacks_test

import (
	"fmt"
	"io"

	"github.com/gorm-ryw/gorm-ryw/callbacks"
	"github.com/jackc/pgx/v5/pgconn"
)

// Whether a commit that returned an error is certain not to have happened.
func ExampleUndone() {
	fmt.Println(callbacks.Undone(&pgconn.PgError{Code: "23505"})) // unique_violation
	fmt.Println(callbacks.Undone(io.ErrUnexpectedEOF))            // the answer never came
	// Output:
	// true
	// false
}
