import { assert, describe, it } from "@effect/vitest"
import type { ConfirmTool } from "#schema/Approval.ts"
import { EDGE } from "#schema/Ids.ts"
import type { Source } from "#schema/Source.ts"
import { ToolName } from "#schema/Tool.ts"
import {
  APPROVAL_SHOWN_CHARS_MAX,
  APPROVAL_SUMMARY_CHARS_MAX,
  askingText,
  visibleJson
} from "#src/choird/approvals/approvalText.ts"
import { CARD_FACTS_CHARS_MAX, cardOf } from "#src/choird/approvals/card.ts"
import { confirmBrief, confirmSummary, confirmText } from "#src/choird/approvals/confirmText.ts"
import { localMinute } from "#src/shared/text/localTime.ts"

const call = (input: ConfirmTool["input"]): ConfirmTool => ({
  tool: ToolName.make("mail.send"),
  input,
  lane: EDGE,
  why: "tainted"
})

const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u{2800}]/u

const long = call({ body: "x".repeat(APPROVAL_SHOWN_CHARS_MAX) })
const asking = {
  approval_id: "7",
  agent_id: "ada",
  summary: "",
  hash: "3fa9c012ff",
  expires_at: "2026-11-22T21:11:48.936Z"
}

describe("what a person reads (R54)", () => {
  it("holds nothing that cannot be seen, and means the same value", () => {
    const hostile = {
      bidi: "safe\u{202e}txt.exe",
      "zero\u{200b}width": "a\u{feff}b",
      control: "a\u{1b}[2Jb\u{7f}\u{9b}",
      lines: "a\u{2028}b\u{2029}",
      filler: "\u{3164}\u{115f}\u{ffa0}\u{2800}",
      tag: "\u{e0041}"
    }
    const shown = visibleJson(hostile)
    assert.notMatch(shown, UNSEEN)
    assert.deepStrictEqual(JSON.parse(shown), hostile)
    assert.notMatch(confirmText(call(hostile)).replaceAll("\n", ""), UNSEEN)
    assert.notMatch(confirmSummary(call(hostile)), UNSEEN)
  })

  it("says each file with its path, size and digest, and hides nothing of its name", () => {
    const sha256 = "3fa9".repeat(16)
    const files = [{ path: ".choirtmp/safe\u{202e}fdp.exe", bytes: 12_345, sha256 }]
    assert.include(
      confirmText({ ...call({ to: "ada" }), files }),
      `\nfile: .choirtmp/safe\\u202efdp.exe, 12,345 bytes, SHA-256 ${sha256}`
    )
  })

  it("says the tool, who asks, why, and the whole input", () => {
    assert.strictEqual(
      confirmText(call({ to: "ada", body: "hi\nthere" })),
      [
        "tool: mail.send",
        "asked by: the conversation",
        "why you are asked: it acts outside the workspace, and the agent has read untrusted text",
        'input: {"to":"ada","body":"hi\\nthere"}'
      ].join("\n")
    )
  })

  it("says of a command whether its network is enforced or only asked for", () => {
    const command = { ...call({ command: "curl x", network: true }), tool: ToolName.make("choir.exec") }
    assert.include(
      confirmText(command, true),
      "network: this command asks for network access, which it gets only if you approve (enforced here)"
    )
    assert.include(confirmText(command, false), "network: access cannot be blocked on this host")
    assert.notInclude(confirmText(call({}), true), "network:")
  })

  it("names where the text came from that the agent has read, whatever the reason is", () => {
    const sources: ReadonlyArray<Source> = ["mail:eve@a.example", "web:b.example"]
    for (const why of ["tainted", "always"] as const)
      assert.include(
        confirmText({ ...call({}), why, sources }),
        "the agent has read untrusted text from a mail of eve@a.example, a page of b.example"
      )
  })

  it("lists every one of many origins behind the input in the same words, and a name that these cut whole as well", () => {
    const long: Source = `mail:${"x".repeat(190)}@a.example`
    const sources: ReadonlyArray<Source> = ["web:a.example", "web:b.example", "web:c.example", "file:phone", long]
    assert.strictEqual(
      confirmText({ ...call({}), sources })
        .split("\n")
        .at(-1),
      `untrusted text from: a page of a.example, a page of b.example, a page of c.example, a file that phone sent, a mail of ${"x".repeat(120)}… (${long})`
    )
  })

  it("shows on a card whom a long mail goes to, whatever else the call and its sources hold", () => {
    const sources = Array.from({ length: 32 }, (_, at): Source => `mail:${"x".repeat(190)}${at}@a.example`)
    const filler = Object.fromEntries(Array.from({ length: 400 }, (_, at) => [`a${at}`, "y"]))
    const mail = {
      ...call({
        body: "b".repeat(6000),
        html: "c".repeat(6000),
        ...filler,
        to: "eve@evil.example",
        bcc: ["mallory@evil.example"]
      }),
      sources
    }
    const shown = confirmBrief(mail, CARD_FACTS_CHARS_MAX, ["body"])
    const brief = shown.text
    assert.isFalse(shown.complete)
    assert.isAtMost(brief.length, CARD_FACTS_CHARS_MAX)
    assert.include(brief, "and 28 more\n")
    assert.include(brief, '"to": "eve@evil.example"')
    assert.include(brief, '"bcc": ["mallory@evil.example"]')
    assert.match(brief, /\nand \d+ more arguments$/u)
    const card = cardOf({ ...asking, text: confirmText(mail), brief: shown, may_decide: true }, "digits")
    assert.include(card.text, "eve@evil.example")
    for (const source of sources) assert.include(confirmText(mail), source)
    const two = confirmBrief(call({ body: "b".repeat(6000), to: "ada@a.example" }), CARD_FACTS_CHARS_MAX, ["body"])
    assert.isTrue(two.complete)
    assert.match(two.text, /"to": "ada@a\.example"\n"body": "b+… \(and \d+ more characters\)$/u)
  })

  it("is cut in a message, which says where the rest is", () => {
    assert.isAtMost(confirmSummary(long).length, APPROVAL_SUMMARY_CHARS_MAX)
    const message = askingText({ ...asking, text: confirmText(long), may_decide: false })
    assert.isBelow(message.length, APPROVAL_SHOWN_CHARS_MAX + 400)
    assert.match(message, /more characters: choirctl approval show 7/u)
    assert.include(message, "An operator decides: choirctl approval approve 7 --hash 3fa9c012,")
  })

  it("asks for a word in a chat that may decide and has shown everything, and for choirctl elsewhere", () => {
    const short = { ...asking, text: confirmText(call({ to: "ada" })) }
    const message = askingText({ ...short, may_decide: true })
    assert.match(message, /^ada asks for your approval \(number 7\)\.\n/u)
    assert.isTrue(
      message.endsWith(`\nOpen until ${localMinute(asking.expires_at)}.\nTo decide: /approve 7 or /reject 7`),
      message
    )
    assert.notInclude(message, "3fa9c012")
    const elsewhere = askingText({ ...short, may_decide: false })
    assert.match(elsewhere, /^ada asks for approval \(number 7\)\.\n/u)
    assert.notInclude(elsewhere, "/approve")
    const cut = askingText({ ...asking, text: confirmText(long), may_decide: true })
    assert.match(
      cut,
      /To decide, once you have read the rest: choirctl approval approve 7 --hash 3fa9c012, or \/reject 7$/u
    )
  })
})
