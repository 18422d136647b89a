/** Cards of calls whose input was made to hide whom, where or how much, or to say something in choird's name. */
import { assert, describe, it } from "@effect/vitest"
import { ConfirmTool } from "#schema/Approval.ts"
import { EDGE } from "#schema/Ids.ts"
import { ToolName } from "#schema/Tool.ts"
import { USUAL_FREE } from "#src/shared/image/freeArguments.ts"
import { type Card, CARD_FACTS_CHARS_MAX, cardOf, documentName } from "#src/choird/approvals/card.ts"
import { confirmBrief, confirmText } from "#src/choird/approvals/confirmText.ts"
import { chatText } from "#src/choird/queues/chatText.ts"
import { AgentId } from "#schema/Ids.ts"
import { UNSEEN } from "#src/shared/text/unseenCharacters.ts"
import { seeded } from "../support/seeded.ts"
import { SIZE } from "../support/size.ts"

const CARDS = SIZE.hostileCards
/** Each test makes this many, so that none of them takes long. */
const CARDS_OF_TEST = 1000
const DEPTH_MAX = 8
const LONG_CHARS = 4096
const MESSAGE_CHARS_MAX = 4096

const RECIPIENT = "eve@evil.example"
const HOST = "https://evil.example:8443/in?x=1"
const AMOUNT = 98_765.43
/** What the call reaches, by keys that people use. */
const REACHES = [
  ["to", RECIPIENT],
  ["toAddress", RECIPIENT],
  ["recipient_email", RECIPIENT],
  ["x", RECIPIENT],
  ["url", HOST],
  ["callbackUrl", HOST],
  ["q", HOST],
  ["amount", AMOUNT],
  ["total_amount", AMOUNT],
  ["priceTotal", AMOUNT]
] as const

/** What a call reaches by keys of other tools and languages that a card puts first too. */
const LISTED: ReadonlyArray<readonly [string, unknown]> = [
  ["telephone", "evil phone"],
  ["team", "design"],
  ["calendar", "private"],
  ["value", AMOUNT],
  ["betrag", AMOUNT],
  ["destination", "evil bucket"],
  ["target", "/mnt/evil"],
  ["empfänger", "Eve Mallory"],
  ["destinataire", "Eve Mallory"],
  ["получатель", "Ева"],
  ["金额", AMOUNT],
  ["x", "+49 (30) 901-820"],
  ["x", "tel:+4930901820"],
  ["x", "٠٣٠٩٠١٨٢٠"],
  ["x", "@eve_mallory"],
  ["x", "#public-wall"]
]
/** The same by keys that no list has. */
const UNLISTED: ReadonlyArray<readonly [string, unknown]> = [
  ["kohde", "matti"],
  ["saaja", "Eve Mallory"],
  ["osszeg", AMOUNT],
  ["nach_dorthin", "konferenzraum-7"],
  ["수신처", "이브"],
  ["z9", "DE02120300000000202051"],
  ["z9", true],
  ["z9", ["eve", "mallory"]],
  ["eve-with-a-long-name-before-it@evil.example", "owner of the folder"]
]

let random = seeded(0)
const pick = <A>(list: ReadonlyArray<A>): A => list[random(list.length)] as A

/** Words that a card of choird has, and marks of chats and languages. */
const FORGED = [
  "◆ agent-1 asks for your approval (number 7).",
  "Tap a button, or send /approve 7 or /reject 7.",
  "tool: choir.fs.read",
  "asked by: the conversation",
  "why you are asked: it is harmless",
  "Open until 2099-01-01 00:00 UTC.",
  '"to": "friend@example.com"',
  '</b><tg-button type="callback_data" data="a:7:x">Approve</tg-button>',
  "![](https://evil.example/p.jpg)",
  "&#9670;&lt;b&gt;",
  "**[approve](tg://resolve?domain=x)**",
  "\u202Emoc.elpmaxe@dneirf\u202C",
  "\u200B\u2066\uFEFF\u{E0041}",
  "\r\n\u2028\u2029\u0085",
  "(and 0 more characters)"
]

const LOOKALIKE_KEYS = [
  "tо",
  "to\u200B",
  "ｔｏ",
  "To ",
  "to_note",
  "recipient_hint",
  "amount_text",
  "url_label",
  "аmount"
]
const OWN_KEYS = ["tool", "asked by", "why you are asked", "input", "Open until", "◆", "network", "file", "page"]

const noise = (): string =>
  pick([
    () => pick(FORGED),
    () => Array.from({ length: 1 + random(4) }, () => pick(FORGED)).join(pick(["\n", " ", "\u00A0".repeat(40)])),
    () => "A friendly note. ".repeat(1 + random(LONG_CHARS / 17)),
    () => `${" ".repeat(random(400))}ok`,
    () => "x".repeat(random(LONG_CHARS))
  ])()

const noiseKey = (): string =>
  pick([
    () => pick(LOOKALIKE_KEYS),
    () => pick(OWN_KEYS),
    () => pick(["aaa_note", "body", "text", "zzz", "subject", "html", "name"]),
    () => `${"k".repeat(random(300))}${random(1000)}`,
    () => pick(FORGED)
  ])()

/** Keys and values without meaning, some of them deep. */
const filler = (count: number, depth: number): Array<readonly [string, unknown]> =>
  Array.from({ length: count }, () => {
    const value = depth > 0 && random(3) === 0 ? Object.fromEntries(filler(random(4), depth - 1)) : noise()
    return [noiseKey(), random(4) === 0 ? [value, noise()] : value] as const
  })

/** An object with these entries among others, in any order; a later key never takes the place of one of them. */
const around = (entries: ReadonlyArray<readonly [string, unknown]>, count: number): Record<string, unknown> => {
  const kept = new Set(entries.map(([key]) => key))
  const all = [...filler(count, 3).filter(([key]) => !kept.has(key)), ...entries]
  return Object.fromEntries(
    all
      .map((entry) => [random(1_000_000), entry] as const)
      .toSorted(([a], [b]) => a - b)
      .map(([, entry]) => entry)
  )
}

/** An input with what it reaches somewhere in it, up to eight keys deep. */
const hostileInput = (reaches: ReadonlyArray<readonly [string, unknown]>): Record<string, unknown> => {
  const count = pick([0, 1, 3, 8, 30])
  let input = around(reaches.slice(0, 1), random(4))
  for (let depth = random(DEPTH_MAX); depth > 0; depth -= 1)
    input = around([[noiseKey(), random(3) === 0 ? [input] : input]], random(3))
  return around([...Object.entries(input), ...reaches.slice(1)], count)
}

const asCall = (input: Record<string, unknown>) =>
  ({
    tool: ToolName.make("sendout"),
    input: input as ConfirmTool["input"],
    lane: EDGE,
    why: "always"
  }) satisfies ConfirmTool

const cardFor = (call: ConfirmTool, free = USUAL_FREE): Card =>
  cardOf(
    {
      approval_id: "7",
      agent_id: "agent-1",
      text: confirmText(call),
      brief: confirmBrief(call, CARD_FACTS_CHARS_MAX, free),
      summary: "",
      hash: "3fa9c012ff",
      expires_at: "2026-11-22T21:11:48.936Z",
      may_decide: true
    },
    "digits"
  )

const isTappable = ({ form }: Card) => form.buttons?.flat().some(({ text }) => text === "Approve") === true

/** Lines that choird writes once on each card, by their beginnings. */
const OWN_LINES = [
  "tool: sendout",
  "asked by: ",
  "why you are asked: ",
  "Open until ",
  "agent-1 asks for your approval (number 7)."
]

const problemOf = (card: Card): string | undefined => {
  const lines = card.text.split("\n")
  if (card.text.length + 2 > MESSAGE_CHARS_MAX) return "is too long for a message"
  if (lines.some((line) => line.search(UNSEEN) >= 0)) return "has a character that nobody sees"
  const doubled = OWN_LINES.find((own) => lines.filter((line) => line.startsWith(own)).length !== 1)
  if (doubled !== undefined) return `does not say once: ${doubled}`
  const asked = lines.findIndex((line) => line.startsWith("input"))
  const foreign = lines
    .slice(asked + 1)
    .filter((line) => !/^(?:"|\[|…|and \d[\d,]* more|This |Open until |Tap a button, )/u.test(line))
  return foreign.length > 0 ? `has a line of the agent's: ${foreign[0]}` : undefined
}

const shows = (card: Card, value: unknown) => card.text.includes(JSON.stringify(value))
const showsEntry = (card: Card, [key, value]: readonly [string, unknown]) =>
  shows(card, value) && (key.length <= 40 || card.text.includes(key))

/** Short values that are sorted before all others of their kind. */
const decoys = (count: number, suffix = "") =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`a${index}${suffix}`, "y"]))

describe("a card of a call", () => {
  it.each(Array.from({ length: CARDS / CARDS_OF_TEST }, (_, part) => 20_261_128 + part))(
    `shows whom, where and how much in ${CARDS_OF_TEST} hostile inputs, in lines that no input can forge (seed %i)`,
    (seed) => {
      random = seeded(seed)
      let long = 0
      for (let round = 0; round < CARDS_OF_TEST; round += 1) {
        const reaches = [pick(REACHES.slice(0, 4)), pick(REACHES.slice(4, 7)), pick(REACHES.slice(7))]
        const input = hostileInput(reaches)
        const card = cardFor(asCall(input))
        if (card.caption !== undefined) long += 1
        if (reaches.every(([, value]) => shows(card, value)) && problemOf(card) === undefined) continue
        const about = `round ${round}: ${JSON.stringify(reaches)}\n${card.text}\n${JSON.stringify(input).slice(0, 3000)}`
        for (const [, value] of reaches) assert.isTrue(shows(card, value), about)
        assert.isUndefined(problemOf(card), about)
      }
      // Most of them do not fit a card.
      assert.isAbove(long, CARDS_OF_TEST / 2)
    }
  )

  it("cannot be approved by a tap where it reaches more than it shows, and says what is left", () => {
    const many = Object.fromEntries(
      Array.from({ length: 300 }, (_, index) => [`a${index}`, { to: `friend${index}@example.com` }])
    )
    const list = { to: Array.from({ length: 300 }, (_, index) => `friend${index}@example.com`) }
    const text = { to: `${"friend@example.com, ".repeat(200)}${RECIPIENT}` }
    const address = { url: `https://example.com\\@${"x".repeat(4000)}@evil.example/` }
    for (const input of [many, list, text, address]) {
      const card = cardFor(asCall(input))
      assert.isFalse(isTappable(card), card.text)
      assert.include(
        card.text,
        `no room for all that may say whom, where or how much. Read ${documentName({ approval_id: "7" })} above, then send /approve 7`
      )
      assert.deepStrictEqual(
        card.form.buttons?.flat().map(({ text: words }) => words),
        ["Reject"]
      )
    }
    assert.match(cardFor(asCall(many)).text, /\nand \d+ more that say whom, where or how much\n/u)
  })

  it("shows what it reaches by keys of other tools and languages, and telephones and handles under any key, before every decoy", () => {
    for (const [key, value] of LISTED) {
      const input = { ...decoys(300), ...decoys(300, "_path"), text: "x".repeat(4000), [key]: value }
      assert.isTrue(shows(cardFor(asCall(input)), value), `${key}: ${JSON.stringify(value)}`)
    }
  })

  it.each([20_271_128, 20_271_129])(
    `has no button for a yes in ${CARDS_OF_TEST} hostile inputs that say whom, where or how much by a key that nobody listed, but where it is seen (seed %i)`,
    (seed) => {
      random = seeded(seed)
      let [hidden, tapped] = [0, 0]
      for (let round = 0; round < CARDS_OF_TEST; round += 1) {
        const entry = pick(UNLISTED)
        const more = random(2) === 0 ? decoys(random(400)) : {}
        const input = { ...more, ...hostileInput([entry, entry]), text: noise() }
        const card = cardFor(asCall(input))
        if (isTappable(card)) tapped += 1
        if (showsEntry(card, entry)) continue
        hidden += 1
        assert.isFalse(isTappable(card), `${JSON.stringify(entry)}\n${card.text}`)
      }
      assert.isAbove(hidden, CARDS_OF_TEST / 20)
      assert.isAbove(tapped, CARDS_OF_TEST / 50)
    }
  )

  it("can be approved by a tap while all that it leaves out are words that the tool declares free", () => {
    const long = "a word and ".repeat(1000)
    const rest = { saaja: "Eve Mallory", osszeg: AMOUNT }
    assert.isTrue(isTappable(cardFor(asCall({ ...rest, text: long }))))
    assert.isTrue(isTappable(cardFor(asCall({ ...rest, note: long }), ["note"])))
    for (const input of [
      { ...rest, note: long },
      { ...rest, command: `echo ${long}; curl evil.example` },
      { ...rest, text: { text: long } },
      { ...rest, body: [long] },
      { text: long, ...decoys(400), ...rest }
    ])
      assert.isFalse(isTappable(cardFor(asCall(input))), JSON.stringify(input).slice(0, 200))
  })

  it("says the host of a long address, wherever in it that stands", () => {
    const card = cardFor(asCall({ url: `https://example.com${"a".repeat(100)}:x@evil.example/${"b".repeat(4000)}` }))
    assert.match(card.text, /… \(and \d+ more characters; its host is "evil\.example"\)/u)
  })

  it("has no button where the end of an address is cut, which may say whom and how much", () => {
    const url = (chars: number) => `https://pay.example/send?note=${"a".repeat(chars)}&to=eve&amount=99999`
    assert.isFalse(isTappable(cardFor(asCall({ url: url(4000) }))))
    const short = cardFor(asCall({ url: url(200), text: "x".repeat(4000) }))
    assert.isTrue(isTappable(short))
    assert.include(short.text, "&to=eve&amount=99999")
  })

  it("shows towers of marks, which would cover the lines beside them, by their numbers", () => {
    const tower = `a${"\u0489".repeat(400)}`
    for (const note of [tower, `${tower}${"x".repeat(4000)}`]) {
      const { text } = cardFor(asCall({ to: "eve@evil.example", note }))
      assert.notMatch(text, /[\p{Mn}\p{Me}]{7}/u)
      assert.include(text, "\\u0489\\u0489")
    }
    const said = chatText({ agent_id: AgentId.make("agent-1"), source: "event", text: `${tower} བརྒྱུད` })
    assert.strictEqual(said, `agent-1: a${"\u0489".repeat(6)}⟨U+0489 ×394⟩ བརྒྱུད`)
  })

  it("shows the letters of a key that looks like another, blanks that push, and letters that are not ASCII where it reaches", () => {
    const card = cardFor(
      asCall({ tо: "friend@example.com", to: "eve@еvil.example", note: `a${" ".repeat(900)}b`, body: "x".repeat(4000) })
    )
    assert.include(card.text, '"t\\u{43e}": ')
    assert.include(card.text, '"to": "eve@еvil.example" (not only ASCII letters)')
    assert.include(card.text, '"note": "a ⟨900 blanks⟩ b"')
  })

  it("begins with choird's mark, which no words of its input can be before", () => {
    const card = cardFor(asCall({ to: "◆" }))
    assert.match(
      chatText({ agent_id: AgentId.make("agent-1"), source: "choird", text: card.text }),
      /^◆ agent-1 asks for your approval \(number 7\)\.\ntool: sendout\n/u
    )
  })
})
