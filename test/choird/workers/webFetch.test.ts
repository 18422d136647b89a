import { brotliCompressSync, gzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Schema } from "effect"
import { PageReader } from "#src/choird/workers/PageReader.ts"
import { PAGE_BYTES_MAX } from "#src/choird/workers/pageProtocol.ts"
import { Unasked, WEB_TEXT_BYTES_MAX } from "#src/shared/web/hostQueries.ts"
import { endless, errorOf, html, leads, page, paragraph, rig, textOf } from "../../support/fetchRig.ts"
import { canary, PUBLIC_ADDRESS } from "../../support/web.ts"
import { TRICKS } from "./ssrfTricks.ts"

describe("choir.web.fetch", () => {
  it.effect("reads the article of a page as Markdown, with addresses that can be followed", () =>
    Effect.gen(function* () {
      const body = `<nav><a href="/">Home</a></nav><article><h1>Tea</h1>${paragraph.repeat(5)}
        <p>See <a href="green?x=1">green tea</a>, <a href="javascript:alert(1)">none</a>.</p>
        <table><tr><th>Kind</th><th>Price</th></tr><tr><td>Green</td><td>3|4</td></tr></table>
        <pre><code class="language-js">const a = 1</code></pre><img src="x.png" alt="a cup"></article><script>evil()</script>`
      const { asked, fetch } = yield* rig({ "/tea/": page(gzipSync(html(body)), { "content-encoding": "gzip" }) })
      const { output, status } = yield* fetch("http://site.test/tea/#part")
      assert.strictEqual(status, "success")
      const text = textOf(output)
      for (const part of [
        "Tea is a drink",
        "[green tea](http://site.test/tea/green?x=1)",
        "| Kind | Price |\n| --- | --- |\n| Green | 3\\|4 |",
        "```js\nconst a = 1\n```",
        "[image: a cup]"
      ])
        assert.include(text, part)
      for (const part of ["evil", "javascript:", "Home"]) assert.notInclude(text, part)
      assert.deepInclude(output, { url: "http://site.test/tea/#part", title: "Tea", chars_total: text.length })
      assert.deepStrictEqual(
        asked.map(({ path }) => path),
        ["/tea/"]
      )
      assert.match(asked[0]?.accept ?? "", /^text\/markdown/u)
    })
  )

  it.effect(
    "takes Markdown where the site has it: asked for, named by the page, or beside a page of documentation",
    () =>
      Effect.gen(function* () {
        const markdown = page("# Plain\n", { "content-type": "text/markdown" })
        const link = `<link rel="alternate" type="text/markdown" href="/named.md">`
        const { asked, fetch } = yield* rig({
          "/asked": markdown,
          "/names": page(html(paragraph, link)),
          "/named.md": markdown,
          "/docs/install": page(html(paragraph)),
          "/docs/install.md": markdown,
          "/docs/fake": page(html(paragraph)),
          "/docs/fake.md": page("<html>not found</html>", { "content-type": "text/plain" }),
          "/away": page(html(paragraph, `<link type=text/markdown href=http://inner.test/x.md>`))
        })
        for (const path of ["/asked", "/names", "/docs/install"])
          assert.strictEqual(textOf((yield* fetch(`http://site.test${path}`)).output), "# Plain\n", path)
        for (const path of ["/docs/fake", "/away"])
          assert.include(textOf((yield* fetch(`http://site.test${path}`)).output), "Tea is a drink", path)
        assert.notInclude(
          asked.map(({ path }) => path),
          "/x.md"
        )
      })
  )

  it.effect("gives a long page in parts that fit a prompt and together are the page", () =>
    Effect.gen(function* () {
      const long = Array.from({ length: 2000 }, (_, index) => `line ${index} 茶 🍵`).join("\n")
      const { asked, fetch } = yield* rig({ "/long": page(long, { "content-type": "text/plain; charset=utf-8" }) })
      let whole = ""
      let offset: number | undefined = 0
      while (offset !== undefined) {
        const { output }: { readonly output: Schema.Json } = yield* fetch("http://site.test/long", offset)
        const part: { readonly text: string; readonly next_offset?: number } = Schema.decodeUnknownSync(
          Schema.Struct({ text: Schema.String, next_offset: Schema.optionalKey(Schema.Int) })
        )(output)
        assert.isAtMost(Buffer.byteLength(part.text), WEB_TEXT_BYTES_MAX)
        whole += part.text
        offset = part.next_offset
      }
      assert.strictEqual(whole, long)
      assert.lengthOf(asked, 1)
      assert.strictEqual(
        errorOf((yield* fetch("http://site.test/long", 1e6)).output),
        `the page has ${long.length} characters: offset is too large`
      )
      // A part of a page that is not kept is no request to its site, which could be told a text by such requests.
      assert.strictEqual(
        errorOf((yield* fetch("http://site.test/long#other", 1)).output),
        "this page is no longer kept: fetch it without offset, then continue with the next_offset of that answer"
      )
      assert.lengthOf(asked, 1)
    })
  )

  it.effect("looks at each redirect again, and reaches nothing that is not public (R72)", () =>
    Effect.gen(function* () {
      const trap = yield* canary
      const inside = `http://127.0.0.1:${trap.port}/`
      const { fetch } = yield* rig({
        "/to": leads("/there"),
        "/there": page(html(paragraph)),
        "/in": leads(inside),
        "/name": leads(`http://inner.test:${trap.port}/`),
        "/metadata": leads("http://169.254.169.254/latest/meta-data/"),
        "/file": leads("file:///etc/passwd"),
        "/credentials": leads("http://user:pass@site.test/there"),
        "/loop": leads("/loop"),
        "/rebind": leads(`http://rebind.test:${trap.port}/rebind`)
      })
      assert.deepInclude((yield* fetch("http://site.test/to")).output, { url: "http://site.test/there" })
      const expected: ReadonlyArray<readonly [string, RegExp]> = [
        ["http://site.test/in", /^a page that site\.test leads to is not on the public network/u],
        ["http://site.test/name", /^a page that site\.test leads to is not on the public network/u],
        ["http://site.test/metadata", /^a page that site\.test leads to is not on the public network/u],
        ["http://site.test/file", /redirects to an address that is not a web page's/u],
        ["http://site.test/credentials", /redirects to an address that is not a web page's/u],
        ["http://site.test/loop", /redirects more than 5 times/u],
        ["http://site.test/rebind", /^a page that site\.test leads to is not on the public network/u],
        [inside, /is not on the public network/u],
        [`http://[::1]:${trap.port}/`, /is not on the public network/u],
        ["http://site.test:22/", /this port is not allowed/u],
        ["http://nowhere.test/", /^nowhere\.test has no address/u],
        ["ftp://site.test/", /only http/u],
        ["site.test/there", /the URL is incomplete/u],
        ["http://a:b@site.test/there", /leave the user and password out/u],
        [`http://site.test/${"a".repeat(3000)}`, /a url has at most 2048 characters/u],
        ["https://site.test/there", /the certificate of site\.test cannot be trusted/u],
        ["http://site.test/missing", /^site\.test answered 404$/u]
      ]
      for (const [url, words] of expected) {
        const { output, status } = yield* fetch(url)
        assert.strictEqual(status, "error", url)
        assert.match(errorOf(output), words, url)
      }
      assert.strictEqual(trap.hits(), 0)
    })
  )

  it.effect("reaches nothing by any of the tricks, asked for by the model or by a site (R72)", () =>
    Effect.gen(function* () {
      const trap = yield* canary
      const places = TRICKS.map(({ host }, index) => [`/trick-${index}`, `http://${host}:${trap.port}/`] as const)
      const more = Object.fromEntries(
        TRICKS.flatMap(({ answers, host }) => (answers === undefined ? [] : [[host, answers]]))
      )
      // As bytes, since Node refuses other letters in a header.
      const answers = places.map(([path, place]) => [path, leads(Buffer.from(place).toString("latin1"))] as const)
      const { dialled, fetch } = yield* rig(Object.fromEntries(answers), { more })
      for (const [path, place] of places) {
        assert.strictEqual((yield* fetch(place)).status, "error", place)
        assert.strictEqual((yield* fetch(`http://site.test${path}`)).status, "error", `a redirect to ${place}`)
      }
      assert.strictEqual(trap.hits(), 0)
      assert.deepStrictEqual([...new Set(dialled)], [PUBLIC_ADDRESS])
    })
  )

  it.effect("says that nobody was asked where an address alone is refused, and not where a name or a site was", () =>
    Effect.gen(function* () {
      const { dialled, fetch, names } = yield* rig({
        "/in": leads("http://127.0.0.1/"),
        "/port": leads("http://x.test:22/")
      })
      const isSilent = (output: Schema.Json) => Schema.is(Unasked)(output)
      const refused = [
        "http://127.0.0.1/",
        "http://[::1]:8080/",
        "http://0x7f.1/",
        "http://10.0.0.1/",
        "http://site.test:22/"
      ]
      for (const url of [...refused, "ftp://site.test/", "http://a@site.test/", "no address"]) {
        const { output, status } = yield* fetch(url)
        assert.deepStrictEqual([status, isSilent(output)], ["error", true], url)
      }
      assert.deepStrictEqual([[...names.keys()], dialled], [[], []])
      for (const url of ["inner.test", "nowhere.test", "site.test/missing", "site.test/in", "site.test/port"]) {
        const { output, status } = yield* fetch(`http://${url}`)
        assert.deepStrictEqual([status, isSilent(output)], ["error", false], url)
      }
    })
  )

  it.effect("refuses pages that are made to be large or slow, within its limits", () =>
    Effect.gen(function* () {
      const megabyte = Buffer.alloc(1024 * 1024, "a")
      const bomb = brotliCompressSync(Buffer.alloc(100 * 1024 * 1024))
      const { fetch } = yield* rig(
        {
          "/large": page(Buffer.alloc(PAGE_BYTES_MAX + 1, "a")),
          "/endless": endless(megabyte),
          "/bomb": page(bomb, { "content-encoding": "br" }),
          "/broken": page("not compressed", { "content-encoding": "gzip" }),
          "/strange": page("x", { "content-encoding": "zstd" }),
          "/deep": page("<div>".repeat(50_000)),
          "/wide": page("<p>x".repeat(300_000)),
          "/entities": page(html("&amp;".repeat(900_000))),
          "/links": page("<link type=".repeat(400_000)),
          "/picture": page("x", { "content-type": "image/png" }),
          "/head": (response) => void response.writeHead(200, { "x-large": "a".repeat(100_000) }).end("x"),
          "/cut": (response) => {
            response.writeHead(200, { "content-type": "text/html", "content-length": "100" })
            response.write("x", () => response.destroy())
          }
        },
        { pageMs: 300 }
      )
      const expected: ReadonlyArray<readonly [string, RegExp]> = [
        ["large", /larger than 5 MiB/u],
        ["endless", /larger than 5 MiB/u],
        ["bomb", /larger than 5 MiB/u],
        ["broken", /the page cannot be read: its compression is broken/u],
        ["strange", /an encoding that cannot be read/u],
        // A fast machine reads it to its end, where there is no text.
        ["deep", /cannot be read: it (?:takes more than 300 ms|takes too much memory|is nested too deep)|has no text/u],
        ["wide", /cannot be read: it takes/u],
        ["entities", /cannot be read: it (?:takes|is nested)/u],
        ["picture", /answered with image data, not with text/u],
        ["head", /sent an answer that cannot be read/u],
        ["cut", /closed the connection before the answer was complete/u]
      ]
      for (const [path, words] of expected) {
        const { output, status } = yield* fetch(`http://site.test/${path}`)
        assert.strictEqual(status, "error", path)
        assert.match(errorOf(output), words, path)
      }
      // Whether it is read in time or not, it ends.
      yield* fetch("http://site.test/links")
    })
  )

  it.effect("outlives a page that takes all the memory that its process may have", () =>
    Effect.gen(function* () {
      const program = new URL("../../support/greedyPage.ts", import.meta.url)
      const layer = PageReader.layer({ program, pageMs: 600_000 })
      const { read } = Context.get(yield* Layer.build(layer), PageReader)
      const { problem } = yield* Effect.flip(read({ url: "http://site.test/", form: "html" }, Buffer.of()))
      assert.strictEqual(problem, "it takes too much memory")
    })
  )

  it.effect("reads other text as it is, in the encoding that it says", () =>
    Effect.gen(function* () {
      const latin = (text: string, type: string) => page(Buffer.from(text, "latin1"), { "content-type": type })
      const { fetch } = yield* rig({
        "/json": page(`{"a":1}`, { "content-type": "application/json" }),
        "/latin": latin("Grüße", "text/plain; charset=iso-8859-1"),
        "/meta": latin(`<meta charset="iso-8859-1"><p>Grüße`, "text/html"),
        "/odd": page("Tea", { "content-type": 'text/plain; charset="no-such-thing"' }),
        "/empty": page(html("<script>document.write('x')</script>"))
      })
      assert.strictEqual(textOf((yield* fetch("http://site.test/json")).output), `{"a":1}`)
      assert.strictEqual(textOf((yield* fetch("http://site.test/latin")).output), "Grüße")
      assert.strictEqual(textOf((yield* fetch("http://site.test/meta")).output), "Grüße")
      assert.strictEqual(textOf((yield* fetch("http://site.test/odd")).output), "Tea")
      assert.match(errorOf((yield* fetch("http://site.test/empty")).output), /the page has no text/u)
    })
  )
})
