package application

// The maximum lengths of an application's texts, in characters, in both the API and the console.
const (
	MaxName  = 100  // first name, last name, phone
	MaxLine  = 200  // reference, project's name, address, a task's title
	MaxText  = 2000 // project's description
	MaxEmail = 254
)
