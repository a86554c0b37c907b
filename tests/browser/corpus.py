"""Texts that try to run, to reorder, to hide, to obey a terminal, or to be too large."""

from __future__ import annotations

ELSEWHERE = "http://elsewhere.invalid"
RUN = "window.__pwned=1"

SCRIPTS = (
    f"<script>{RUN}</script>",
    f"<SCRIPT SRC={ELSEWHERE}/x.js></SCRIPT>",
    f"</script><script>{RUN}</script>",
    f"</title></style></textarea></noscript><script>{RUN}</script>",
    f"--><script>{RUN}</script><!--",
    f"]]><script>{RUN}</script>",
    f"<scr<script>ipt>{RUN}</scr</script>ipt>",
    "<!--<script>",
    f"<img src=x onerror={RUN}>",
    f"<img src={ELSEWHERE}/x.png>",
    f"<svg onload={RUN}>",
    f"<svg><animate onbegin={RUN} attributeName=x dur=1s>",
    f'<iframe srcdoc="<script>parent.{RUN}</script>"></iframe>',
    f"<iframe src=javascript:{RUN}>",
    f'<a href="javascript:{RUN}">link</a>',
    f"<a href={ELSEWHERE}><b>bold</b></a>",
    f"javascript:{RUN}",
    f"<object data={ELSEWHERE}/x></object><embed src={ELSEWHERE}/x>",
    f"<meta http-equiv=refresh content=0;url={ELSEWHERE}>",
    f"<base href={ELSEWHERE}/>",
    f"<link rel=stylesheet href={ELSEWHERE}/x.css>",
    f"<style>@import url({ELSEWHERE}/x.css);*{{display:none}}</style>",
    f"<form action={ELSEWHERE}><button>send</button></form>",
    f"<details open ontoggle={RUN}>",
    f"<input autofocus onfocus={RUN}>",
    f"<video><source onerror={RUN}></video>",
    f'<math><mtext><img src=x onerror="{RUN}">',
    f"<template><script>{RUN}</script></template>",
    f"\\u003cscript\\u003e{RUN}\\u003c/script\\u003e",
    f"&lt;script&gt;{RUN}&lt;/script&gt; &amp;&#60;&#x3c;",
)
ATTRIBUTES = (
    f'" onmouseover="{RUN}',
    f"' onfocus='{RUN}' autofocus='",
    f"` onclick=`{RUN}",
    f'"><svg onload={RUN}>',
    f"x style=background:url({ELSEWHERE})",
    "\" ' ` = < > & / \\",
)
TEMPLATES = (
    f"{{{{constructor.constructor('{RUN}')()}}}}",
    f"${{{RUN}}}",
    f"<%= {RUN} %>",
    f"#{{{RUN}}}",
    "%{y} %{customdata[0]} %{x|%Y} <extra>gone</extra>",
    "$\\unicode{x3c}script$",
    "[bold red]rich[/bold red] [link=http://elsewhere.invalid]x[/link]",
    "__proto__",
    "constructor",
    '=HYPERLINK("http://elsewhere.invalid")',
    "../../../etc/passwd",
    "%2e%2e%2f%00",
)
BIDI = (
    "a\u202eb\u202cc",
    "\u202atext\u202b\u202d",
    "\u2066isolated\u2067\u2068\u2069",
    "\u200emark\u200f\u061c",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0643\u0645 123",
    "\u05e9\u05dc\u05d5\u05dd (1) [2] <3>",
    "\u202e" * 200 + "unclosed",
)
TERMINAL = (
    "\x1b[31mred\x1b[0m",
    "\x1b[2J\x1b[Hcleared",
    "\x1b]0;title\x07",
    "\x1b]8;;http://elsewhere.invalid\x07link\x1b]8;;\x07",
    "\x1b]52;c;cm0gLXJm\x07",
    "\x9b31m\x90q\x9c",
    "over\rwritten\x08\x08\x7f",
    "\x00\x01\x02\x1f\x80\x85\x9f",
)
HIDDEN = (
    "zero\u200bwidth\u2060\ufeffspaces",
    "\u200d\u200c joiners \U0001f468\u200d\U0001f469\u200d\U0001f467",
    "soft\u00adhyphen\u00a0and\u3000blanks\u2007",
    "lines\u2028and\u2029paragraphs\x0b\x0c",
    "\U000e0041\U000e0042\U000e007f tags",
    "\ufff9interlinear\ufffa\ufffb \ufffc \uffff \ufdd0",
    "\ue000private\U0010fffd",
    "lone \ud800 and \udfff surrogates",
    "\ufe0f\ufe0e selectors \u180e",
)
LARGE = (
    "A" * 1_000_000,
    "<b>" * 20_000,
    "\n" * 5_000 + "end",
    "Z" + "\u0351\u036b\u0313\u0314" * 400,
    "e\u0301\u0323" * 500,
    "\ufdfd" * 60 + "\U0001242b" * 60,
    "w" * 3_000,
    "\t" * 500 + "x",
    "a b " * 4_000,
    " " * 2_000 + "far",
    "",
)

CORPUS = SCRIPTS + ATTRIBUTES + TEMPLATES + BIDI + TERMINAL + HIDDEN + LARGE
