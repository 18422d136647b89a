/** Answers as ordinary sites send them: in other characters, without a type, as a PDF, or leading on by themselves. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { errorOf, html, page, paragraph, rig, textOf } from "../../support/fetchRig.ts"
import { smallPdf } from "../../support/smallPdf.ts"
import { canary } from "../../support/web.ts"

/** The pages that pageCorpus.test.ts reads without a site. */
const CORPUS = join(import.meta.dirname, "../../corpus/web")
const PAGES = readdirSync(CORPUS).filter((name) => name.endsWith(".html"))
const fileOf = (name: string) => readFileSync(join(CORPUS, name), "utf8")

describe("an answer of a site", () => {
  it.effect("is a page with its comments, shadow content, values of inputs and tables, as the corpus has them", () =>
    Effect.gen(function* () {
      const { fetch } = yield* rig(
        Object.fromEntries(PAGES.map((name) => [`/${name.slice(0, -5)}`, page(fileOf(name))]))
      )
      assert.includeMembers(PAGES, ["comments-article.html", "input-values.html", "shadow.html"])
      for (const name of PAGES.map((file) => file.slice(0, -5))) {
        const { output } = yield* fetch(`http://site.test/${name}`)
        const golden = fileOf(`${name}.md`)
        if (/^title: \s*$/u.test(golden)) {
          assert.match(errorOf(output), /the page has no text/u, name)
          continue
        }
        const { title = "" } = output as { readonly title?: string }
        const text = textOf(output).replaceAll("http://site.test/", "https://site.example/")
        assert.strictEqual(`title: ${title}\n\n${text}\n`, golden, name)
      }
    })
  )

  it.effect("reads the characters that the byte order mark says, else the header, else the page, else UTF-8", () =>
    Effect.gen(function* () {
      const stale = `<meta charset="iso-8859-1"><p>Grüße`
      const utf16 = Buffer.from("\u{feff}<p>Grüße", "utf16le")
      const { fetch } = yield* rig({
        "/header": page(stale),
        "/page": page(Buffer.from(stale, "latin1"), { "content-type": "text/html" }),
        "/mark": page(utf16, { "content-type": "text/html; charset=iso-8859-1" }),
        "/utf16": page(utf16.subarray(2), { "content-type": "text/html; charset=utf-16le" }),
        "/undeclared": page("<p>Grüße", { "content-type": "text/html" }),
        "/old": page(Buffer.from("<p>Grüße", "latin1"), { "content-type": "text/html" })
      })
      for (const path of ["header", "page", "mark", "utf16", "undeclared", "old"])
        assert.strictEqual(textOf((yield* fetch(`http://site.test/${path}`)).output), "Grüße", path)
    })
  )

  it.effect("shows text whose type is missing or odd, and names what is not text", () =>
    Effect.gen(function* () {
      const as = (type: string, body: string | Buffer = "a = 1") => page(body, { "content-type": type })
      const { fetch } = yield* rig({
        "/missing": (response) => void response.writeHead(200).end("a = 1"),
        "/octet": as("application/octet-stream"),
        "/ndjson": as("application/x-ndjson", '{"a":1}\n{"a":2}\n'),
        "/toml": as("application/toml"),
        "/yaml": as("application/x-yaml"),
        "/page": as("application/octet-stream", "<!doctype html><p>Tea <b>time</b>"),
        "/gzip": page(gzipSync("hidden")),
        "/zip": as("application/zip", Buffer.from("504b030414000000", "hex")),
        "/binary": as("application/x-thing", Buffer.from([1, 0, 2, 0])),
        "/video": as("video/mp4")
      })
      for (const path of ["missing", "octet", "toml", "yaml"])
        assert.strictEqual(textOf((yield* fetch(`http://site.test/${path}`)).output), "a = 1", path)
      assert.strictEqual(textOf((yield* fetch("http://site.test/ndjson")).output), '{"a":1}\n{"a":2}\n')
      assert.strictEqual(textOf((yield* fetch("http://site.test/page")).output), "Tea **time**")
      const named: ReadonlyArray<readonly [string, RegExp]> = [
        ["gzip", /data that gzip compressed, which the site does not say/u],
        ["zip", /a ZIP archive/u],
        ["binary", /binary data, not text/u],
        ["video", /video data, not with text/u]
      ]
      for (const [path, words] of named) assert.match(errorOf((yield* fetch(`http://site.test/${path}`)).output), words)
    })
  )

  it.effect("reads the words of a PDF, page by page, and says why one has none", () =>
    Effect.gen(function* () {
      const pdf = smallPdf([["Invoice 4711", "Umbrella 200 EUR"], ["Thank you (all)"]], "An invoice")
      const { fetch } = yield* rig({
        "/pdf": page(pdf, { "content-type": "application/pdf" }),
        "/octet": page(pdf, { "content-type": "application/octet-stream" }),
        "/packed": page(gzipSync(pdf), { "content-type": "application/pdf", "content-encoding": "gzip" }),
        "/empty": page(smallPdf([[]]), { "content-type": "application/pdf" }),
        "/broken": page("%PDF-1.4 nothing", { "content-type": "application/pdf" })
      })
      for (const path of ["pdf", "octet", "packed"]) {
        const { output } = yield* fetch(`http://site.test/${path}`)
        assert.deepInclude(output, {
          title: "An invoice",
          text: "## Page 1\n\nInvoice 4711\nUmbrella 200 EUR\n\n## Page 2\n\nThank you (all)"
        })
      }
      assert.match(errorOf((yield* fetch("http://site.test/empty")).output), /a PDF whose pages are pictures/u)
      assert.match(errorOf((yield* fetch("http://site.test/broken")).output), /a PDF that is damaged/u)
    })
  )

  it.effect("follows a page that leads to another one by itself, once and through the same guard", () =>
    Effect.gen(function* () {
      const trap = yield* canary
      const refresh = (content: string, text = "") =>
        page(html(text, `<meta http-equiv="Refresh" content="${content}">`))
      const { asked, fetch } = yield* rig({
        "/from": refresh("0; url=/to"),
        "/to": page(html(paragraph)),
        "/twice": refresh("0;URL='/from'", paragraph),
        "/self": refresh("0; url=/self", paragraph),
        "/news": refresh("300; url=/to", paragraph),
        "/inside": refresh(`1; url=http://127.0.0.1:${trap.port}/`),
        "/file": refresh("0; url=file:///etc/passwd")
      })
      assert.deepInclude((yield* fetch("http://site.test/from")).output, { url: "http://site.test/to" })
      for (const path of ["self", "news"])
        assert.deepInclude((yield* fetch(`http://site.test/${path}`)).output, { url: `http://site.test/${path}` })
      assert.strictEqual(asked.filter(({ path }) => path === "/to").length, 1)
      // The second page only leads on, and has no words of its own.
      assert.match(errorOf((yield* fetch("http://site.test/twice")).output), /the page has no text/u)
      assert.match(
        errorOf((yield* fetch("http://site.test/inside")).output),
        /^a page that site\.test leads to is not on/u
      )
      assert.match(
        errorOf((yield* fetch("http://site.test/file")).output),
        /leads to an address that is not a web page's/u
      )
      assert.strictEqual(trap.hits(), 0)
    })
  )
})
