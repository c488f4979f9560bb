// Package e2etest runs the real program for tests: builds it, gives each test a
// database and a folder of its own, starts commands and services there as
// processes, and stands in for partners and for their endpoints.
package e2etest
