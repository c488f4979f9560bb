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

// May tells whether the reader of the page that is rendered reaches the route at a
// pattern; "POST " before it asks for the change where a page has the same pattern.
func May(ctx context.Context, pattern string) bool {
	may := FrameOf(ctx).May
	return may != nil && may(pattern)
}
