// Package e2etest runs the real program for tests: it builds the program, gives each
// test its own database and folder, starts commands and services there as processes,
// and plays the partners and their endpoints.
package e2etest
