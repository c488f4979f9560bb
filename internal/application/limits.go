package application

// The bounds of what is said about an application, in characters. The API and
// the console hold to the same.
const (
	MaxName  = 100  // first name, last name, phone
	MaxLine  = 200  // reference, project's name, address, a task's title
	MaxText  = 2000 // project's description
	MaxEmail = 254
)
