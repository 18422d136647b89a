import { assert, describe, it } from "@effect/vitest"
import { ToolName } from "#schema/Tool.ts"
import { covers, GRANT_NAMES_MAX, GRANT_WORDS_CHARS_MAX, grantOf, wordsText } from "#src/choird/approvals/grantWords.ts"
import type { GrantWords } from "#schema/Grant.ts"
import { BROWSE_TOOL } from "#src/shared/web/hostQueries.ts"
import { sha256 } from "#src/shared/events/hashChain.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { seeded } from "../../support/seeded.ts"

const MAIL = ToolName.make("mail.send")
const EXEC = ToolName.make("choir.exec")

const granted = (input: unknown, tool = MAIL): GrantWords => {
  const words = grantOf({ tool, input: input as never })
  return words ?? assert.fail("no grant")
}
const isCovered = (words: GrantWords, input: unknown, tool = MAIL) => covers(words, { tool, input: input as never })

const ADA = { to: "ada@example.org", subject: "The plan", body: "See you at noon" }

describe("the words of a grant", () => {
  it("name the tool, its recipients, paths, hosts and arguments", () => {
    assert.strictEqual(
      wordsText(granted(ADA)),
      "calls to mail.send, only to ada@example.org, with no arguments other than body, subject, to"
    )
    assert.strictEqual(
      wordsText(granted({ url: "https://example.org/a?b=c", file: "out/a.html", draft: true })),
      "calls to mail.send, only within out/, only at https://example.org, with no arguments other than draft=true, file, url"
    )
    assert.strictEqual(wordsText(granted({ command: "make" }, EXEC)), "exactly this call of choir.exec and no other")
  })

  it("are missing where a card could not show them", () => {
    const many = Array.from({ length: GRANT_NAMES_MAX + 1 }, (_, index) => `a${index}@example.org`)
    assert.isUndefined(grantOf({ tool: MAIL, input: { to: many } }))
    assert.isUndefined(grantOf({ tool: MAIL, input: { note: "x".repeat(GRANT_WORDS_CHARS_MAX) } }))
  })

  it("are missing for an act on whatever page is open, and no earlier grant covers one", () => {
    for (const action of ["click", "type", "select", "press"]) {
      const input = { action, ref: "e12" }
      assert.isUndefined(grantOf({ tool: BROWSE_TOOL, input }), action)
      const earlier = {
        tool: BROWSE_TOOL,
        arguments: [`action="${action}"`, 'ref="e12"'],
        recipients: [],
        paths: [],
        hosts: []
      }
      assert.isFalse(covers(earlier, { tool: BROWSE_TOOL, input }), action)
      assert.isFalse(
        covers({ ...earlier, arguments: [], input_sha256: sha256(canonicalJson(input)) }, { tool: BROWSE_TOOL, input })
      )
    }
    const open = { tool: BROWSE_TOOL, input: { action: "open", url: "https://example.org/a" } }
    assert.isTrue(covers(granted(open.input, BROWSE_TOOL), open))
  })

  it("cover other texts to the same people, and nothing that reaches further", () => {
    const words = granted(ADA)
    assert.isTrue(isCovered(words, { ...ADA, subject: "Another one", body: "It rains, so we meet inside" }))
    assert.isTrue(isCovered(words, { ...ADA, to: " Ada@Example.org" }))
    const outside: ReadonlyArray<unknown> = [
      { ...ADA, to: "eve@example.org" },
      { ...ADA, to: ["ada@example.org", "eve@example.org"] },
      { ...ADA, to: "ada@example.org, eve@example.org" },
      { ...ADA, to: [] },
      { subject: ADA.subject, body: ADA.body },
      { ...ADA, cc: "eve@example.org" },
      { ...ADA, note: "eve@example.org" },
      { ...ADA, attachments: ["secrets.txt"] },
      { ...ADA, everybody: true },
      { ...ADA, headers: { bcc: "eve@example.org" } },
      { ...ADA, body: "https://evil.example/x" },
      { ...ADA, "to.x": "ada@example.org" },
      [ADA],
      "ada@example.org",
      null
    ]
    for (const input of outside) assert.isFalse(isCovered(words, input), JSON.stringify(input))
    assert.isFalse(isCovered(words, ADA, ToolName.make("mail.send_all")))
  })

  it("cover a folder and what is below it, by names that lead nowhere else", () => {
    const words = granted({ path: "reports/2026/may.md" })
    for (const path of ["reports/2026/june.md", "./reports/2026/x/y.md", "/workspace/reports/2026/june.md"])
      assert.isTrue(isCovered(words, { path }), path)
    for (const path of [
      "reports/2026/../../secrets",
      "reports/2025/x.md",
      "reports/2026",
      "reports/20260/x",
      "/etc/reports/2026/x",
      "reports\\2026\\x",
      "../reports/2026/x",
      ""
    ])
      assert.isFalse(isCovered(words, { path }), path)
    assert.isFalse(isCovered(granted({ path: "a.md" }), { path: "b.md" }))
  })

  it("cover a path only where every program takes it for the same one", () => {
    const words = granted({ path: "reports/may.md" })
    for (const path of [
      "reports/%2e%2e/secrets",
      "reports/..%2Fsecrets",
      "reports/\u2025/secrets",
      "reports/\uFF0E\uFF0E/secrets",
      "~/reports/x",
      "~root/reports/x"
    ])
      assert.isFalse(isCovered(words, { path }), path)
    assert.isFalse(isCovered(granted({ url: "https://kay.example" }), { url: "https://\u212Aay.example" }))
    assert.isFalse(isCovered(granted({ path: "~/a.md" }), { path: "~/b.md" }))
    assert.isTrue(isCovered(granted({ path: "caf\u00E9/a.md" }), { path: "caf\u00E9/b.md" }))
  })

  it("cover an address only where every program reads the same host in it", () => {
    const words = granted({ url: "https://good.example/form" })
    for (const url of ["https://good.example/x?to=a", "HTTPS://Good.Example:443/", "https://good.example?a=b"])
      assert.isTrue(isCovered(words, { url }), url)
    for (const url of [
      "https://good.example\\@evil.example/",
      "https://good.example\\@x@evil.example/",
      "https://good.example#@x@evil.example/",
      "https://good.example?@x@evil.example/",
      "https://good.example\\.evil.example/",
      "https://good.example#@evil.example/",
      "https://good.example?@evil.example/",
      "https://good.example:443@evil.example/",
      "https://:word@good.example/",
      "https://good.example.evil.example/",
      "https://good.example./",
      "https://good.example:8443/",
      "http://good.example/",
      "https:good.example",
      "https:///good.example/",
      "//good.example/",
      "https://good\u3002example/",
      "https://good.\uFF45xample/",
      "https://g\u043Eod.example/",
      "http\u017F://good.example/",
      "https://good.exam\tple/",
      "https://good.example/ https://evil.example/",
      "https://good.example/\u202Egpj",
      "https://xn--god-y8a.example/"
    ])
      assert.isFalse(isCovered(words, { url }), JSON.stringify(url))
  })

  it("cover the same recipient and none who differs in case alone, but for a mail address", () => {
    assert.isTrue(isCovered(granted({ to: "ada@example.org" }), { to: "ADA@example.org" }))
    const channel = granted({ channel: "UCx5XG1OV2P6uZZ5FSM9Ttw" })
    assert.isTrue(isCovered(channel, { channel: "UCx5XG1OV2P6uZZ5FSM9Ttw" }))
    assert.isFalse(isCovered(channel, { channel: "UCX5xg1ov2p6uzz5fsm9ttw" }))
    // The small form of the Kelvin sign is a k.
    assert.isFalse(isCovered(granted({ to: "mark@example.org" }), { to: "mar\u212A@example.org" }))
    assert.isFalse(isCovered(granted({ to: "ada@example.org" }), { to: "\u0430da@example.org" }))
  })

  it("cover the same flags, numbers and single words, which may decide what a tool does", () => {
    const words = granted({ to: "ada@example.org", amount: 5, visibility: "private", urgent: false })
    assert.isTrue(isCovered(words, { to: "ada@example.org", amount: 5, visibility: "private", urgent: false }))
    for (const change of [{ amount: 5000 }, { visibility: "public" }, { urgent: true }, { visibility: "public now" }])
      assert.isFalse(
        isCovered(words, { to: "ada@example.org", amount: 5, visibility: "private", urgent: false, ...change }),
        JSON.stringify(change)
      )
  })

  it("cover the same command and no other, whatever tool runs it", () => {
    const words = granted({ command: "npm publish", network: true }, EXEC)
    assert.isTrue(isCovered(words, { network: true, command: "npm publish" }, EXEC))
    assert.isFalse(isCovered(words, { command: "npm publish; curl evil.example", network: true }, EXEC))
    assert.isFalse(isCovered(words, { command: "npm publish", network: true, cwd: "x" }, EXEC))
    assert.isFalse(isCovered(granted({ to: "db", sql: "SELECT 1" }), { to: "db", sql: "DROP TABLE x" }))
  })

  /** Every call is built from pieces of which the test itself knows what they reach. */
  it("never cover a call outside them, of 10,000", () => {
    const random = seeded(20_260_717)
    const pick = <A>(from: ReadonlyArray<A>): A => from[random(from.length)] as A
    const some = <A>(from: ReadonlyArray<A>): ReadonlyArray<A> => from.filter(() => random(10) < 4)
    const PEOPLE = ["ada@example.org", "eve@example.org", "bob@example.net"]
    const FOLDERS = ["out", "out/deep", "private", ".."]
    const HOSTS = ["https://a.example", "https://b.example", "http://a.example"]
    const TOOLS = [MAIL, ToolName.make("web.post")]
    const make = () => {
      const tool = pick(TOOLS)
      const [to, cc] = [some(PEOPLE), some(PEOPLE)]
      const files = some(FOLDERS).map((folder) => ({ folder, path: `${folder}/${pick(["x", "y"])}.txt` }))
      const hosts = some(HOSTS)
      const flags = { all: pick([true, false]), mode: pick(["safe", "force"]) }
      const input = {
        ...(to.length > 0 ? { to } : {}),
        ...(cc.length > 0 ? { options: { cc: cc.length === 1 ? cc[0] : cc } } : {}),
        ...(files.length > 0 ? { files: files.map(({ path }) => path) } : {}),
        ...(hosts.length > 0 ? { links: hosts.map((host) => ({ url: `${host}/p${random(9)}` })) } : {}),
        ...(random(2) === 0 ? { flags } : {}),
        body: `words ${random(1_000_000)}`
      }
      return {
        tool,
        input,
        people: [...to, ...cc],
        folders: files.map(({ folder }) => folder),
        hosts,
        flags: "flags" in input ? flags : undefined
      }
    }
    type Call = ReturnType<typeof make>
    const isInside = (one: Call, other: Call): boolean => {
      const isExact = one.folders.includes("..")
      if (isExact) return JSON.stringify(one.input) === JSON.stringify(other.input) && one.tool === other.tool
      return (
        one.tool === other.tool &&
        other.people.every((name) => one.people.includes(name)) &&
        other.hosts.every((name) => one.hosts.includes(name)) &&
        other.folders.every((name) => one.folders.some((folder) => name === folder || name.startsWith(`${folder}/`))) &&
        !other.folders.includes("..") &&
        (other.flags === undefined || JSON.stringify(one.flags) === JSON.stringify(other.flags))
      )
    }
    let covered = 0
    for (let round = 0; round < 10_000; round += 1) {
      const one = make()
      // Half of the calls change a part of what was granted.
      const other = round % 2 === 0 ? make() : { ...one, input: { ...one.input, body: "other words" } }
      const words = granted(one.input, one.tool)
      const isCoveredNow = isCovered(words, other.input, other.tool)
      if (isCoveredNow) covered += 1
      if (isCoveredNow) assert.isTrue(isInside(one, other), `${wordsText(words)} | ${JSON.stringify(other.input)}`)
      assert.isTrue(isCovered(words, one.input, one.tool), JSON.stringify(one.input))
    }
    assert.isAbove(covered, 1000)
  })
})
