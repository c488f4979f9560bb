package mail

import "github.com/a-h/templ"

// The inline styles of elements. Classes exist only for the dark colours.
const (
	stylePage  = "margin:0;padding:0;width:100%;background-color:#eef0f3;"
	styleOuter = "width:100%;border-collapse:collapse;background-color:#eef0f3;"
	styleCard  = "width:100%;max-width:600px;margin:0 auto;border-collapse:separate;" +
		"border-radius:8px;background-color:#ffffff;"
	styleGutter = "padding:24px 12px;"
	styleBody   = styleFont + "padding:32px 32px 16px;font-size:16px;line-height:1.5;" + styleInk
	styleFoot   = styleFont + "padding:16px 32px 28px;font-size:13px;line-height:1.5;" + styleSoft
	styleRule   = styleBreak + styleLine + "padding-top:16px;"

	styleHeading = styleBreak + styleBold + styleInk +
		"margin:0 0 16px;font-size:24px;line-height:1.25;"
	styleSub  = "margin:24px 0 8px;font-size:17px;line-height:1.3;" + styleBold + styleInk
	stylePara = styleBreak + "margin:0 0 16px;"
	styleNote = styleBreak + "margin:0 0 16px;font-size:14px;line-height:1.5;" + styleSoft

	styleFacts = "width:100%;border-collapse:collapse;margin:0 0 24px;font-size:15px;" +
		"line-height:1.4;"
	styleLabel = styleFont + styleLine + "padding:9px 16px 9px 0;width:34%;text-align:left;" +
		"vertical-align:top;font-weight:400;" + styleSoft
	styleValue = styleFont + styleLine + styleBreak + "padding:9px 0;vertical-align:top;" +
		"font-weight:600;" + styleInk

	// styleHidden is for the preview, which only lists of mails show.
	styleHidden = "display:none;max-height:0;max-width:0;overflow:hidden;opacity:0;mso-hide:all;"

	styleFont = "font-family:-apple-system,BlinkMacSystemFont,Segoe UI,Roboto,Helvetica,Arial," +
		"sans-serif;"
	styleBreak = "overflow-wrap:anywhere;word-break:break-word;"
	styleBold  = "font-weight:700;"
	styleInk   = "color:#1f2328;"
	styleSoft  = "color:#5b6470;"
	styleLine  = "border-top:1px solid #e3e6ea;"
)

// css marks a style of this package as safe. Styles contain no foreign data: colours have
// passed parseColor.
func css(style string) templ.SafeCSS { return templ.SafeCSS(style) }

func (p palette) head() templ.SafeCSS {
	return css("padding:20px 32px;border-radius:8px 8px 0 0;" + styleFont + styleBreak +
		"font-size:18px;line-height:1.3;font-weight:700;" +
		"background-color:" + p.Head + ";color:" + p.OnHead + ";")
}

// callout highlights the subject of the mail.
func (p palette) callout() templ.SafeCSS {
	return css(styleFont + styleBreak + "padding:14px 16px;font-size:17px;line-height:1.4;" +
		"font-weight:600;" + styleInk +
		"background-color:#f5f6f8;border-left:4px solid " + p.Accent + ";")
}

func (p palette) button() templ.SafeCSS {
	return css("display:inline-block;padding:12px 22px;border-radius:6px;font-weight:600;" +
		"text-decoration:none;background-color:" + p.Accent + ";color:" + p.OnAccent + ";")
}

func (p palette) link() templ.SafeCSS { return css("color:" + p.Link + ";" + styleBreak) }

// sheet contains what cannot be inlined: dark colours and narrow screens. It must override
// the inline styles, hence !important.
func (p palette) sheet() string {
	return `<style>
:root{color-scheme:light dark;supported-color-schemes:light dark}
@media (max-width:480px){
.body{padding:24px 20px 8px!important}
.head{padding:18px 20px!important}
.foot{padding:12px 20px 24px!important}
.gutter{padding:0!important}
.card,.head{border-radius:0!important}
}
@media (prefers-color-scheme:dark){
.page{background-color:#121519!important}
.card{background-color:` + darkCard + `!important}
.ink{color:#e9ecef!important}
.soft{color:#aab3bd!important}
.line{border-color:#363d46!important}
.callout{background-color:#272d35!important}
.link{color:` + p.DarkLink + `!important}
}
</style>`
}
