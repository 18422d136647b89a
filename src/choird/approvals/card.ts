/** The card of an approval in a chat with buttons: facts first, and what is too long for a message as a file before it (D16). Pure. */
import { BUTTON_DATA_BYTES_MAX, type Button, type OutboxForm } from "#src/choird/queues/OutboxForm.ts"
import { ApprovalId } from "#schema/Ids.ts"
import type { GrantWords } from "#schema/Grant.ts"
import { GRANT_AGENT_MS, GRANT_USES_MAX } from "./grantRows.ts"
import { wordsText } from "./grantWords.ts"
import { randomBytes } from "node:crypto"
import { type Asking, openUntil } from "./approvalText.ts"
import { DAY_CHARS, localMinute } from "#src/shared/text/localTime.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"

/** Characters of the facts on a card; with everything else it stays below the 4,096 of a Telegram message. */
export const CARD_FACTS_CHARS_MAX = 2800

/** Characters of the outcome on a card. */
const OUTCOME_CHARS_MAX = 1000

/** The actions of buttons, by the letter before the approval's number and the digits of its card. */
const ACTIONS = { a: "approve", r: "reject", j: "job", g: "agent" } as const
export type CardAction = (typeof ACTIONS)[keyof typeof ACTIONS]

const LETTERS = Object.fromEntries(Object.entries(ACTIONS).map(([letter, action]) => [action, letter])) as Readonly<
  Record<CardAction, keyof typeof ACTIONS>
>

/** The words of a tapped button. Whether it is a button of that card, only the stored card knows. */
export interface CardTap {
  readonly action: CardAction
  readonly approval_id: ApprovalId
}

/** Random bytes of one card. */
const DIGITS_BYTES = 16

/** The digits of a new card. The payload's digest would be known to the agent that asks (D60). */
export const cardDigits = (): string => randomBytes(DIGITS_BYTES).toString("base64url")

const TAP = /^([arjg]):([1-9]\d{0,17}):[\w-]+$/u

/** The tap in a button's data; `undefined` for any other text. */
export const readTap = (data: string): CardTap | undefined => {
  const [, letter, approval_id = ""] = data.length > BUTTON_DATA_BYTES_MAX ? [] : (TAP.exec(data) ?? [])
  return letter === undefined
    ? undefined
    : { action: ACTIONS[letter as keyof typeof ACTIONS], approval_id: ApprovalId.make(approval_id) }
}

/** The button of one card for an action. */
type Draw = (action: CardAction, text: string, style?: Button["style"]) => Button

const drawFor =
  (approval_id: string, digits: string): Draw =>
  (action, text, style) => ({
    text,
    data: `${LETTERS[action]}:${approval_id}:${digits}`,
    ...(style === undefined ? {} : { style })
  })

/** Whether a card shows all of it. */
const fitsCard = (text: string): boolean => text.length <= CARD_FACTS_CHARS_MAX

const facts = ({ brief, text }: Pick<Asking, "brief" | "text">): string =>
  fitsCard(text) ? text : (brief?.text ?? `${firstPart(text, CARD_FACTS_CHARS_MAX - 1)}…`)

/** The file's name, as the card names it. */
export const documentName = ({ approval_id }: Pick<Asking, "approval_id">): string => `approval-${approval_id}.txt`

const whole = (asking: Asking): ReadonlyArray<string> =>
  fitsCard(asking.text) ? [] : [`This is only part of the request: all of it is in ${documentName(asking)} above.`]

/** Whether a card shows enough of a request for a tap: of a call all that may say whom, where or how much. */
const showsReach = ({ brief, text }: Pick<Asking, "brief" | "text">): boolean =>
  fitsCard(text) || brief?.complete !== false

/** How to decide by a card. */
const toDecide = (asking: Asking): string => {
  const commands = `/approve ${asking.approval_id} or /reject ${asking.approval_id}`
  return showsReach(asking)
    ? `Tap a button, or send ${commands}.`
    : `This card has no room for all that may say whom, where or how much. Read ${documentName(asking)} above, then send ${commands}.`
}

/** Everything of a card but how to decide: what is asked, and by whom. */
const body = (asking: Asking): ReadonlyArray<string> => [facts(asking), ...whole(asking)]

/** A card as the outbox has it. */
export interface Card {
  readonly text: string
  readonly form: OutboxForm
  /** The caption of the file that goes before it. */
  readonly caption?: string
}

/** The calls that a person may allow along with the approval of one. */
export interface Offer {
  readonly words: GrantWords
  /** Whether a job asks, and whether this person may allow it for the agent whatever it works on. */
  readonly job: boolean
  readonly agent: boolean
  readonly now_ms: number
  /** The time zone of this person, where it is not the home's. */
  readonly zone?: string | undefined
}

const lastDay = ({ now_ms, zone }: Offer): string => localMinute(now_ms + GRANT_AGENT_MS, zone).slice(0, DAY_CHARS)

const offered = (offer: Offer): ReadonlyArray<string> => {
  const { agent, job, words } = offer
  const scopes = [
    ...(job ? ["for this job (for at most a day)"] : []),
    ...(agent ? [`for this agent until ${lastDay(offer)}`] : [])
  ]
  return scopes.length === 0
    ? []
    : [`You can also allow up to ${GRANT_USES_MAX} more, ${scopes.join(", or ")}: ${wordsText(words)}.`]
}

const offerButtons = (draw: Draw, offer: Offer): ReadonlyArray<Button> => [
  ...(offer.job ? [draw("job", "This job")] : []),
  ...(offer.agent ? [draw("agent", `Until ${lastDay(offer)}`)] : [])
]

/** The card that asks a person who may decide. @param digits of this card alone. */
export const cardOf = (asking: Asking, digits: string, offer?: Offer): Card => {
  const { agent_id, approval_id } = asking
  const draw = drawFor(approval_id, digits)
  const taps = showsReach(asking)
  const given = taps ? offer : undefined
  return {
    text: [
      `${agent_id} asks for your approval (number ${approval_id}).`,
      ...body(asking),
      openUntil(asking),
      ...(given === undefined ? [] : offered(given)),
      toDecide(asking)
    ].join("\n"),
    form: {
      buttons: [
        [...(taps ? [draw("approve", "Approve", "success")] : []), draw("reject", "Reject", "danger")],
        ...(given === undefined ? [] : [offerButtons(draw, given)])
      ].filter((row) => row.length > 0)
    },
    ...(fitsCard(asking.text)
      ? {}
      : { caption: `The whole text of approval ${approval_id}, requested by ${agent_id}.` })
  }
}

/** The card once it is decided, and once what was approved has ended: the outcome first, and no buttons. */
export const decidedCard = (asking: Asking, outcome: string): string =>
  [
    firstPart(outcome, OUTCOME_CHARS_MAX),
    "",
    `${asking.agent_id} asked for approval ${asking.approval_id}.`,
    ...body(asking)
  ].join("\n")

/** The decider as the people of a chat know it. */
export const byWhom = (resolved_by: string | null): string => {
  if (resolved_by?.startsWith("grant:") === true) return ` by the standing grant ${resolved_by.slice("grant:".length)}`
  if (resolved_by === null || resolved_by === "choird" || resolved_by.startsWith("agent:")) return ""
  const [, dm] = /^gateway:[^/]+\/(.+)$/u.exec(resolved_by) ?? []
  return dm === undefined ? " with choirctl" : ` in the chat ${dm}`
}
