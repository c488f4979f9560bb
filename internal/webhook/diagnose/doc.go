// Package diagnose explains the log to people: why an attempt failed and who has to act
// ([Attempt]), why a signature does not match ([Signature]), and how to repeat a request
// by hand ([Curl]).
package diagnose
