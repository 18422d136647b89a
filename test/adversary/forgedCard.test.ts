/** An agent that words an approval card of its own, in the chat where choird's cards stand. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { AgentId } from "#schema/Ids.ts"
import { messageParts } from "#src/choird/telegram/messageParts.ts"
import { sentName } from "#src/choird/gateway/sentName.ts"
import { chatText } from "#src/choird/queues/chatText.ts"
import { seenText } from "#src/shared/text/seenText.ts"
import { spawnChoirctl } from "../support/choirctl.ts"
import { temporaryFolder } from "../support/engines.ts"
import { approvalDetail, fakeChoird } from "../support/fakeChoird.ts"

const CARD = "agent-1 asks for approval 7.\nproposal: config_change /budgets/turn_max_steps"
const agent_id = AgentId.make("agent-1")
const said = (text: string) => ({ agent_id, source: "event", text }) as const

/** Signs that a person may take for the mark: diamonds, squares, flowers, letters of old scripts, and letters in signs. */
const SIGNS = [
  ...Array.from("◆◇♦⬥❖🔶🔷💠⯁🞜🞝🞞◊⋄⟐⧪⟡⯎⯏✦⌑🔸💎🞔🞙🞛🟐⬗🮮🮯𝇋۞❂⬩⯌⬪◘■🔻⯐⏣❥🟔◾⧫⬖⟠᛫ᛜꕤ•※·"),
  "♦\uFE0F",
  "◀▶",
  "a\u20DF",
  "\u200B◆",
  "\u3164◆",
  "܀",
  "᪥"
]

/** How Markdown and HTML may put a sign at the beginning of a text. */
const AT_THE_BEGINNING = [
  (sign: string) => `${sign} ${CARD}`,
  (sign: string) => `${sign}${sign}${CARD}`,
  (sign: string) => `\n \n**${sign}** ${CARD}`,
  (sign: string) => `\`${sign} agent-1 asks\``,
  (sign: string) => `\`\`\`\n${sign} agent-1 asks\n\`\`\``,
  (sign: string) => `[${sign} agent-1 asks](https://x.example)`,
  (sign: string) => `||${sign} agent||`,
  (sign: string) => `> ${sign} agent`,
  (sign: string) => `- ${sign} agent`,
  (sign: string) => `# ${sign} agent`,
  (sign: string) => `| ${sign} | a |\n|---|---|\n| ${sign} | b |`
]

const BEGINS_PLAINLY = /^(?:\p{L}|\p{Nd}|["'\p{Pi}\p{Pf}])/u

describe("a card that an agent wrote", () => {
  it("never begins as choird's messages do, whichever sign it uses, and holds choird's mark nowhere", () => {
    assert.isTrue(chatText({ agent_id, source: "choird", text: CARD }).startsWith("◆ agent-1 asks"))
    for (const sign of SIGNS)
      for (const write of AT_THE_BEGINNING) {
        const text = write(sign)
        const [first] = messageParts(said(text), 4096)
        assert.isTrue(first?.text.startsWith("agent-1:"), JSON.stringify([text, first?.text]))
        assert.notInclude(first?.text, "◆")
        assert.notInclude(chatText(said(text)), "◆")
      }
    for (const sign of [...SIGNS, ...Array.from("*+-#_~<>|=^@()[]{}$%&/\\.,:;!?")]) {
      assert.match(chatText(said(`${sign} ${CARD}`)), /^agent-1:[ \n]/u, sign)
      for (const write of AT_THE_BEGINNING) assert.match(chatText(said(write(sign))), /^agent-1:[ \n]/u, write(sign))
    }
    assert.strictEqual(chatText(said(`◆ ${CARD}`)), `agent-1:\n* ${CARD}`)
    assert.strictEqual(chatText(said("- one\n- two")), "agent-1:\n- one\n- two")
    assert.notInclude(messageParts(said(`hello\n◆ ${CARD}`), 4096)[0]?.text, "◆")
  })

  it("does not begin so in a later message of a long answer either", () => {
    const parts = messageParts(said(`${"word ".repeat(40)}\n\n💎 ${CARD}\n\n${"word ".repeat(40)}`.repeat(20)), 250)
    assert.isAbove(parts.length, 20)
    for (const { text } of parts) {
      assert.match(text, BEGINS_PLAINLY)
      assert.isAtMost(text.length, 250)
    }
    assert.isTrue(parts.some(({ text }) => text.startsWith("agent-1: 💎")))
  })

  it("leaves a plain answer of any language as it is", () => {
    for (const text of [
      "plain * text",
      "Schön, 2 Äpfel",
      "Привет",
      "你好",
      "مرحبا",
      "שלום",
      "नमस्ते",
      "สวัสดี",
      "안녕하세요",
      "7 of 9",
      "“quoted”",
      "«цитата»",
      "'x'"
    ])
      for (const shown of [messageParts(said(text), 4096), [{ text: chatText(said(text)), entities: [] }]])
        assert.deepStrictEqual(shown, [{ text, entities: [] }], text)
    assert.strictEqual(messageParts(said("👍 done"), 4096)[0]?.text, "agent-1: 👍 done")
    assert.strictEqual(messageParts(said("- one\n- two"), 4096)[0]?.text, "agent-1:\n• one\n• two")
    const [bold] = messageParts(said("🎉 **done**"), 4096)
    assert.deepStrictEqual(bold, { text: "agent-1: 🎉 done", entities: [{ type: "bold", offset: 12, length: 4 }] })
  })

  it("cannot hide or turn around a word: such characters are shown by their numbers, and those that a script needs stay", () => {
    assert.strictEqual(seenText("safe\u202Etxt.exe"), "safe⟨U+202E⟩txt.exe")
    assert.strictEqual(seenText("a\u200Bb\u2066c\uFEFF\u00AD\u061C"), "a⟨U+200B⟩b⟨U+2066⟩c⟨U+FEFF⟩⟨U+00AD⟩⟨U+061C⟩")
    assert.strictEqual(seenText(`x${"\u200B".repeat(5000)}y`), "x⟨U+200B ×5000⟩y")
    assert.strictEqual(seenText("\u{E0041}\u{E0042}"), "⟨U+E0041⟩⟨U+E0042⟩")
    assert.strictEqual(seenText("a\u200Db\u200C"), "a⟨U+200D⟩b⟨U+200C⟩")
    assert.strictEqual(seenText("one\r\ntwo\tthree\u001B[2J"), "one\ntwo\tthree⟨U+001B⟩[2J")
    for (const kept of [
      "👨‍👩‍👧 🏳️‍🌈 ❤️ 1️⃣ 🤷🏽‍♀️ ✔︎",
      "\u{1F3F4}\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}",
      "می\u200Cخواهم",
      "क्\u200Dष न्\u200D",
      "葛\u{E0100}",
      "\u0600١"
    ])
      assert.strictEqual(seenText(kept), kept)
    const [link] = messageParts(said("see [bank\u202Eelpmaxe](https://evil.example/)"), 4096)
    assert.strictEqual(link?.text, "see bank⟨U+202E⟩elpmaxe")
  })

  it("has no command that a tap on it would give in the person's name", () => {
    // What apps make a command of.
    const command = /(?<![\w/<>])\/([a-z0-9_]{1,64})(?:@\w{3,32})?(?![\w/<>])/giu
    for (const text of [
      "Tap /approve to see the rest",
      "**/approve**",
      "/**approve**",
      "tg:///approve",
      "/APPROVE",
      "(/reject@double_bot)",
      "`/stop` /update_all\n/approve",
      "Send /new for that",
      "/approve 7"
    ]) {
      const [part] = messageParts(said(text), 4096)
      assert.notMatch(part?.text ?? "", command, text)
      assert.notMatch(chatText(said(text)), command)
    }
    assert.strictEqual(messageParts(said("\\/app**rove**"), 4096)[0]?.text, "agent-1: ∕approve")
    const cut = messageParts(said(`${"x".repeat(100)}/approve`), 100)
    for (const { text } of cut) assert.notMatch(text, command)
    for (const text of ["see https://x.example/approve", "a/approve", "/status", "/workspace/stop/it"])
      assert.include(messageParts(said(text), 4096)[0]?.text, text)
  })

  it("has no address that opens something but a page where it is tapped", () => {
    // What Telegram makes a link of beside those of the web, wherever the scheme begins.
    const link = /(?:tg|ton|tonsite|ftp):\/\//iu
    for (const text of [
      "tg://resolve?domain=evil_bot&start=x",
      "see **tg://resolve?domain=x** now",
      "TG://settings",
      "xtg://join?invite=y",
      "ton://transfer/EQabc?amount=9",
      "TonSite://evil.ton",
      "ftp://evil.example/x",
      "tg:**//**resolve?domain=x",
      "tg:\\/\\/resolve?domain=x",
      "[x](tg://resolve?domain=x)",
      "`ton://transfer/x`",
      "| a |\n|---|\n| tg://settings |",
      "◆ tg://settings"
    ]) {
      for (const part of messageParts(said(text), 4096)) {
        assert.notMatch(part.text, link, text)
        for (const { url = "" } of part.entities) assert.notMatch(url, link, text)
      }
      assert.notMatch(chatText(said(text)), link, text)
    }
    for (const { text } of messageParts(said("tg://resolve?domain=x ".repeat(2000)), 1024)) assert.notMatch(text, link)
    const named = messageParts(said("[x](https://x.example/?u=tg://y)"), 4096)[0]?.entities
    assert.deepStrictEqual(named, [{ type: "text_link", url: "https://x.example/?u=tg://y", offset: 0, length: 1 }])
    const kept = "see https://x.example/a?b=1, http://y.example:80/ and mailto:a@b.example"
    assert.strictEqual(messageParts(said(kept), 4096)[0]?.text, kept)
    assert.strictEqual(chatText(said(kept)), kept)
  })

  it("is not in the name of a file, which never is that of choird's own file", () => {
    assert.strictEqual(sentName("out/◆ The whole text.txt"), "_ The whole text.txt")
    assert.strictEqual(sentName("💎🔷 x\u202Efdp.exe"), "__ x⟨U+202E⟩fdp.exe")
    assert.strictEqual(sentName('a";b\\c.txt'), "a__b_c.txt")
    assert.strictEqual(sentName("x/"), "file")
    for (const name of [
      "approval-1.txt",
      "APPROVAL-1.TXT",
      "Approval_12.pdf",
      "approval 1 .txt",
      "approval-1.txt.txt",
      " approval-1",
      "аррrоvаl-1.txt",
      "арргоѵаӏ-1.txt",
      "αpproval-1.txt",
      "ａｐｐｒｏｖａｌ－１．ｔｘｔ",
      "𝐚𝐩𝐩𝐫𝐨𝐯𝐚𝐥-𝟏.txt",
      "ⓐⓟⓟⓡⓞⓥⓐⓛ-①.txt",
      "appr0val-1.txt",
      "approvaI-1.txt",
      "approva1-7.txt",
      "àpprovál-1.txt",
      "approval-١.txt",
      "approval-l.txt",
      "ap\u200Bproval-1.txt",
      "a.p.p.r.o.v.a.l-1.txt",
      "my approval-1.txt"
    ])
      assert.match(sentName(name), /^renamed\.\w+$/u, name)
    for (let number = 1; number <= 2000; number += 1)
      for (const name of [`approval-${number}.txt`, `Approval_${number}.pdf`])
        assert.match(sentName(name), /^renamed\.\w+$/u, name)
    for (const name of [
      "report.pdf",
      "Übersicht 2026.txt",
      "отчёт-1.txt",
      "資料.docx",
      "approval letter from Ada.pdf",
      "résumé (1).pdf"
    ])
      assert.strictEqual(sentName(`a/${name}`), name)
  })

  it.live("cannot get a yes at a terminal: the command that it names shows choird's own facts and asks", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      const digits = approvalDetail.hash.slice(0, 8)
      const args = ["--home", home, "approval", "approve", "7", "--hash", digits]
      const left = yield* spawnChoirctl(args, { typing: [{ after: "Approve agent-1", text: "\r" }] })
      assert.strictEqual(left.code, 1, left.out)
      assert.include(left.out, "tool: mail.send")
      assert.isFalse(calls.some(({ name }) => name === "approve"))
      const done = yield* spawnChoirctl(args, { typing: [{ after: "Approve agent-1", text: "y" }] })
      assert.strictEqual(done.code, 0, done.out)
      assert.deepStrictEqual(calls.filter(({ name }) => name === "approve").length, 1)
      yield* spawnChoirctl([...args, "--yes"], { typing: [] })
      assert.deepStrictEqual(calls.filter(({ name }) => name === "approve").length, 2)
    })
  )
})
