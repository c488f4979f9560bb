package mail

// Task tells a borrower about a new task.
type Task struct {
	Borrower
	// Title is the task as its author wrote it.
	Title string
}

// Subject quotes the task.
func (t Task) Subject(Lender) string { return "A task for your application: " + short(t.Title, 80) }

func (t Task) write(d *document) {
	d.Preview = t.Title
	d.heading("There is something to do")
	d.paragraph(t.greeting("Hello", ". A new task was added to your application:")...)
	d.callout("* ", visible(t.Title))
	d.paragraph("Your application continues as soon as it is done.")
	t.close(d)
}
