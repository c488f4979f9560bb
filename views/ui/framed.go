package ui

import (
	"context"
	"io"

	"github.com/a-h/templ"
)

type frameKey struct{}

// Framed is a page in its frame, which the page's parts find by FrameOf.
func Framed(frame Frame, body templ.Component) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		ctx = context.WithValue(ctx, frameKey{}, frame)
		if frame.May != nil {
			ctx = WithMay(ctx, frame.May)
		}
		return Layout(frame).Render(templ.WithChildren(ctx, body), w)
	})
}

// FrameOf is the frame of the page that is rendered; the zero one outside of a page.
func FrameOf(ctx context.Context) Frame {
	frame, _ := ctx.Value(frameKey{}).(Frame)
	return frame
}

// Title is the title of the page that is rendered.
func Title(ctx context.Context) string { return FrameOf(ctx).Title }

type mayKey struct{}

// WithMay tells the parts of a page, also those that are sent alone, what the reader
// may do.
func WithMay(ctx context.Context, may func(pattern string) bool) context.Context {
	return context.WithValue(ctx, mayKey{}, may)
}

// May tells whether the reader of what is rendered reaches the page at a pattern, or
// where there is none the change.
func May(ctx context.Context, pattern string) bool {
	may, ok := ctx.Value(mayKey{}).(func(string) bool)
	return ok && may(pattern)
}

// MaySend tells whether the reader may make the change at a pattern that is a page's,
// too.
func MaySend(ctx context.Context, pattern string) bool { return May(ctx, "POST "+pattern) }

// IfMay is a path without parameters for a reader who reaches it, empty for others.
func IfMay(ctx context.Context, path string) string { return If(May(ctx, path), path, "") }
