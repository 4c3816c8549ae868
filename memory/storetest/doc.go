// Package storetest says in tests what a memory.Store has to do. Every store runs the same ones:
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, func(t *testing.T, path string) memory.Store { ... })
//	}
//
// It tests what a store keeps, not what the service does with it.
package storetest
