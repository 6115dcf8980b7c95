// Package api runs the examples of the packages' reference pages that need servers. They
// are in the root module, which must not import rywtest: there they are compiled, and
// end with a comment "Prints:" in place of "Output:". The test here has the very same
// code run on a real primary and a real replica, and what it prints compared.
package api
