/** 60 saved pages: each shape of content in three ways of the sites around it, in several languages and sets of characters. */
import type { PageOrder } from "#src/choird/workers/pageProtocol.ts"
import { HIDDEN } from "../mailbox/Shape.ts"
import { legacyBytes } from "../mailbox/legacyBytes.ts"
import { MARKS, PACKS, type Pack } from "../mailbox/packs.ts"
import { PAGE_SHAPES, type PageShape } from "./shapes.ts"

export interface SavedPage {
  readonly shape: PageShape
  readonly way: number
  readonly pack: Pack
  readonly body: Buffer
  readonly order: PageOrder
}

const NAV = `<nav class="navbar"><ul><li><a href="/">Home</a></li><li><a href="/all">All things</a></li></ul></nav>`
const FOOTER = `<footer><p>© 2026 The firm</p><a href="/imprint">Imprint</a></footer>`

/** How a site puts its own parts around a content. */
const WAYS: ReadonlyArray<(content: string, title: string, set: string, url: string) => string> = [
  (content, title, set) =>
    `<!DOCTYPE html><html lang="en"><head><meta charset="${set}"><title>${title}</title><link rel="stylesheet" href="a.css"></head><body><header>${NAV}</header><main>${content}</main>${FOOTER}</body></html>`,
  (content, title) =>
    `<!doctype html>\n<html><head><title>${title}</title><style>.offscreen{position:absolute;left:-9999px}.modal{display:none}</style><script>window.data={a:"${HIDDEN}"}</script></head><body class="home"><svg style="display:none"><title>${HIDDEN}</title><symbol id="a"></symbol></svg><a class="offscreen" href="#c">${HIDDEN}</a>${NAV}<div class="modal"><p>${HIDDEN}</p></div><div id="page"><div id="c" role="main">${content}</div><aside class="sidebar"><h3>Popular</h3><ul><li><a href="/x">Another page</a></li></ul></aside></div>${FOOTER}<script src="b.js"></script><noscript><img src="t.gif" alt="${HIDDEN}"></noscript></body></html>`,
  (content, title, set, url) =>
    `<html><head><meta http-equiv="Content-Type" content="text/html; charset=${set}"><base href="${url}"><title>${title}</title><template><p>${HIDDEN}</p></template></head><body><div role="banner">The firm</div><div role="navigation"><a href="/">Home</a></div><article-shell><template shadowrootmode="open"><div class="shell"><slot></slot></div></template>${content}</article-shell><div role="contentinfo">Imprint</div><dialog><p>${HIDDEN}</p></dialog></body></html>`
]

const spelled = (text: string, { words }: Pack): string =>
  MARKS.reduce((all, mark, at) => all.replaceAll(mark, words[at] ?? ""), text).replaceAll("{hidden}", HIDDEN)

export const savedPages: ReadonlyArray<SavedPage> = PAGE_SHAPES.flatMap((shape, index) =>
  WAYS.map((around, way) => {
    const url = `https://site.example/base/${shape.name}`
    const pack = PACKS[(index + 3 * way) % PACKS.length] as Pack
    // Contents have letters that old sets lack.
    const sets = pack.sets.filter((set) => set !== "us-ascii" && set !== "iso-2022-jp")
    const page = (set: string) => around(spelled(shape.main, pack), spelled(shape.title, pack), set, url)
    const fits = sets.find((set) => {
      try {
        return legacyBytes(page(set), set).length > 0
      } catch {
        return false
      }
    })
    const set = fits ?? "utf-8"
    const charset = way === 1 ? set : undefined
    return { shape, way, pack, body: legacyBytes(page(set), set), order: { url, form: "html" as const, charset } }
  })
)
