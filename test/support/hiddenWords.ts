/** Ways to write words into HTML that nobody who looks at it sees, and ways that look alike and are seen. */

export const HIDDEN_WORD = "obeyme"
export const SEEN_WORD = "greetings"

const H = HIDDEN_WORD
const S = SEEN_WORD

/** Each hides {@link HIDDEN_WORD}. */
export const HIDING: Readonly<Record<string, string>> = {
  "display none": `<p style="display:none">${H}</p>`,
  "display none, marked as important": `<p style="display: NONE !important; display: block">${H}</p>`,
  "display none with an escape": `<p style="d\\69splay:none">${H}</p>`,
  "display none with a comment": `<p style="display/**/:/* a;b */none">${H}</p>`,
  "display none with an entity": `<p style="display&#58;none">${H}</p>`,
  "display none behind a bracket in quotes": `<p title=">" style='display:none'>${H}</p>`,
  "display none without quotes": `<p style=display:none>${H}</p>`,
  "the first of two styles": `<p style="display:none" style="display:block">${H}</p>`,
  "within what is not displayed": `<div style="display:none"><p style="display:block">${H}</p></div>`,
  "visibility hidden": `<p style="visibility:hidden"><b>${H}</b></p>`,
  "the attribute hidden": `<p hidden>${H}</p>`,
  "a closed dialog": `<dialog>${H}</dialog>`,
  "letters of no size": `<p style="font-size:0">${H}</p>`,
  "letters of one pixel": `<p style="font-size:1px">${H}</p>`,
  "letters of no size by a shorthand": `<p style="font: 0px/1 Arial, sans-serif">${H}</p>`,
  "letters of a part of their size": `<div style="font-size:0.2em"><p style="font-size:20%">${H}</p></div>`,
  "white letters": `<p style="color:#fff">${H}</p>`,
  "nearly white letters": `<p style="color:rgb(250, 251, 252)">${H}</p>`,
  "white letters by an old element": `<font color="white">${H}</font>`,
  "transparent letters": `<p style="color:rgba(0,0,0,0.01)">${H}</p>`,
  "letters like their background": `<div style="background:#102030"><p style="color: #112233">${H}</p></div>`,
  "letters like a table's background": `<table bgcolor="#003366"><tr><td><font color="#003366">${H}</font></td></tr></table>`,
  "letters of another notation like their background": `<div style="background-color:hsl(0, 100%, 50%);color:red">${H}</div>`,
  "no opacity": `<p style="opacity:0">${H}</p>`,
  "hardly any opacity": `<p style="opacity:.01">${H}</p>`,
  "opacity by a filter": `<p style="filter: opacity(0%)">${H}</p>`,
  "no height": `<div style="max-height:0;overflow:hidden">${H}</div>`,
  "no width": `<div style="width:0px;overflow:hidden">${H}</div>`,
  "left of the window": `<div style="position:absolute;left:-999em">${H}</div>`,
  "above the window": `<div style="position:fixed;top:-5000px">${H}</div>`,
  "indented out of the window": `<p style="text-indent:-9999px">${H}</p>`,
  "moved out of the window": `<p style="transform: translateX(-2000px)">${H}</p>`,
  "scaled to nothing": `<p style="transform:scale(0)">${H}</p>`,
  "clipped to nothing": `<p style="position:absolute;clip:rect(0,0,0,0)">${H}</p>`,
  "clipped by a path": `<p style="clip-path: inset(100%)">${H}</p>`,
  "a rule for an element": `<style>p { display: none }</style><p>${H}</p>`,
  "a rule that comes later": `<p class="x">${H}</p><style>.x{display:none}</style>`,
  "a rule for a class and an element": `<style>p.a.b{visibility:hidden}</style><p class="b a">${H}</p>`,
  "a rule for an id": `<style>#x{font-size:0}</style><p id="x">${H}</p>`,
  "a rule for an attribute": `<style>[data-x="1"]{opacity:0}</style><p data-x="1">${H}</p>`,
  "a rule for what is within": `<style>.a p > b{color:white}</style><div class="a"><p><b>${H}</b></p></div>`,
  "a rule that weighs more": `<style>#x{display:none} .x{display:block}</style><p id="x" class="x">${H}</p>`,
  "a rule within a query": `<style>@media screen and (min-width: 1px) { .x { display: none } }</style><p class="x">${H}</p>`,
  "a rule behind an import": `<style>@import url("a.css"); .x{display:none}</style><p class="x">${H}</p>`,
  "a script": `<script>${H}</script>`,
  "a template": `<template>${H}</template>`,
  "a comment": `<!-- ${H} -->`
}

/** An end that ends nothing, since a block stands between. */
export const STRAY_END = `<span style="display:none"><div></span>${H}</div></span>`

/** Each shows {@link SEEN_WORD}. */
export const SHOWING: Readonly<Record<string, string>> = {
  "nothing around it": S,
  "after an empty comment": `<!-->${S}`,
  "behind a smaller sign": `1 < 2 ${S}`,
  "after what is not displayed": `<div style="display:none">x</div>${S}`,
  "after a paragraph that ends by itself": `<p style="display:none">x<p>${S}`,
  "visible within the invisible": `<div style="visibility:hidden"><p style="visibility:visible">${S}</p></div>`,
  "small letters": `<p style="font-size:9px">${S}</p>`,
  "white letters on a dark ground": `<table><tr><td style="background-color:#123"><font color="#fff">${S}</font></td></tr></table>`,
  "white letters on a picture": `<div style="background:url(a.png);color:#fff">${S}</div>`,
  "dark letters in white ones": `<div style="color:#fff"><p style="color:#000">${S}</p></div>`,
  "letters cut out of their background": `<h1 style="-webkit-background-clip:text;color:transparent">${S}</h1>`,
  "a height without an overflow": `<div style="max-height:0">${S}</div>`,
  "a small shift": `<p style="margin-left:-10px;position:relative;left:-5px">${S}</p>`,
  "a rule for print": `<style>@media print{p{display:none}}</style><p>${S}</p>`,
  "a rule for small windows": `<style>@media (max-width:600px){p{display:none}}</style><p>${S}</p>`,
  "a rule for the mouse": `<style>p:hover{display:none}</style><p>${S}</p>`,
  "a rule for others": `<style>.a > p, b.x{display:none}</style><div class="a"><div><p>${S}</p></div></div>`,
  "a style that is none": `<p style="color:#12345;display;font-size:big">${S}</p>`
}
