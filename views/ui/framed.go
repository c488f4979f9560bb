package ui

import (
	"context"
	"io"

	"github.com/a-h/templ"
)

type frameKey struct{}

// Framed is a page in its frame; the parts of the page get the frame from FrameOf.
func Framed(frame Frame, body templ.Component) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		ctx = context.WithValue(ctx, frameKey{}, frame)
		if frame.May != nil {
			ctx = WithMay(ctx, frame.May)
		}
		return Layout(frame).Render(templ.WithChildren(ctx, body), w)
	})
}

// FrameOf returns the frame of the page being rendered; the zero value outside a page.
func FrameOf(ctx context.Context) Frame {
	frame, _ := ctx.Value(frameKey{}).(Frame)
	return frame
}

// Title returns the title of the page being rendered.
func Title(ctx context.Context) string { return FrameOf(ctx).Title }

type mayKey struct{}

// WithMay sets what the reader may do, for pages and for fragments that are sent alone.
func WithMay(ctx context.Context, may func(pattern string) bool) context.Context {
	return context.WithValue(ctx, mayKey{}, may)
}

// May reports whether the reader may open the page at a pattern or, if there is no page,
// make the change.
func May(ctx context.Context, pattern string) bool {
	may, ok := ctx.Value(mayKey{}).(func(string) bool)
	return ok && may(pattern)
}

// MaySend reports whether the reader may make the change at a pattern that is also a
// page's.
func MaySend(ctx context.Context, pattern string) bool { return May(ctx, "POST "+pattern) }

// IfMay returns a path without parameters if the reader may open it, otherwise nothing.
func IfMay(ctx context.Context, path string) string { return If(May(ctx, path), path, "") }
