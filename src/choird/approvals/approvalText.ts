/**
 * The text that a person reads before a decision. choird makes it from the stored payload alone: no words of a model replace the facts, and
 * no invisible or reordered characters remain (R54).
 */
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { STACKED, UNSEEN } from "#src/shared/text/unseenCharacters.ts"
import { localMinute } from "#src/shared/text/localTime.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"

/** The length of an approval's one line in a list. */
export const APPROVAL_SUMMARY_CHARS_MAX = 200
/** Characters of a payload that the message to a person shows; `choirctl approval show` prints all of it. */
export const APPROVAL_SHOWN_CHARS_MAX = 7500

/** The JSON escape of a character that nobody sees. */
export const unseenEscaped = (character: string): string =>
  Array.from({ length: character.length }, (_, index) => character.charCodeAt(index))
    .map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`)
    .join("")

/** A text on one line in which every character can be seen, and none covers what is beside it. */
export const visibleLine = (text: string): string =>
  text.replaceAll(UNSEEN, unseenEscaped).replaceAll(STACKED, unseenEscaped)

/** Canonical JSON in which every character is visible: others are escaped, which leaves the value the same. */
export const visibleJson = (value: unknown): string => visibleLine(canonicalJson(value))

/** The parts of a row that a message needs. */
export interface Asking {
  readonly approval_id: string
  readonly agent_id: string
  /** All facts, as `choirctl approval show` prints them. */
  readonly text: string
  /**
   * The facts that a card shows where all of them do not fit, and whether everything that the request reaches is among them; else a card shows their
   * beginning.
   */
  readonly brief?: { readonly text: string; readonly complete: boolean } | undefined
  readonly summary: string
  readonly hash: string
  /** As an ISO text. */
  readonly expires_at: string
  /** The time zone of the one who is asked, where it is not the home's. */
  readonly zone?: string | undefined
  /** Whether the DM that is asked may decide in its chat. */
  readonly may_decide: boolean
}

/** The first digits of a payload's digest, which a decision names. */
export const hash8 = (hash: string): string => hash.slice(0, 8)

/** Whether a message can show all of it. A person who saw only a part cannot approve in a chat. */
export const fitsChat = (text: string): boolean => text.length <= APPROVAL_SHOWN_CHARS_MAX

/** The instructions to decide. A chat that has shown everything needs only the number, whose meaning never changes. */
const howToDecide = ({ approval_id, hash, may_decide, text }: Asking): string => {
  const approve = `choirctl approval approve ${approval_id} --hash ${hash8(hash)}`
  if (!may_decide) return `An operator decides: ${approve}, or choirctl approval reject ${approval_id}`
  return fitsChat(text)
    ? `To decide: /approve ${approval_id} or /reject ${approval_id}`
    : `To decide, once you have read the rest: ${approve}, or /reject ${approval_id}`
}

/** The time that a person has, in words. */
export const openUntil = ({ expires_at, zone }: Pick<Asking, "expires_at" | "zone">): string =>
  `Open until ${localMinute(expires_at, zone)}.`

/** The message that asks a person where there are no buttons, once for each approval. */
export const askingText = (asking: Asking): string => {
  const { agent_id, approval_id, may_decide, text } = asking
  const part = firstPart(text, APPROVAL_SHOWN_CHARS_MAX)
  const shown = fitsChat(text)
    ? text
    : `${part}…\n(${text.length - part.length} more characters: choirctl approval show ${approval_id})`
  return [
    `${agent_id} asks for ${may_decide ? "your approval" : "approval"} (number ${approval_id}).`,
    shown,
    openUntil(asking),
    howToDecide(asking)
  ].join("\n")
}

/** For the person who asked, where only an admin decides. */
export const adminDecidesText = ({
  agent_id,
  approval_id,
  summary
}: Pick<Asking, "agent_id" | "approval_id" | "summary">): string =>
  `${agent_id} asks to change the configuration (number ${approval_id}): ${summary}. An admin was asked and decides.`

/** For a request whose call ended before anybody decided, for example because the agent was stopped. */
export const overText = ({ approval_id, summary }: Pick<Asking, "approval_id" | "summary">): string =>
  `Approval ${approval_id} is closed: ${summary}. Its call ended before a decision and did not run.`

/** For a request that nobody decided in time. */
export const expiredText = ({ approval_id, summary }: Pick<Asking, "approval_id" | "summary">): string =>
  `Approval ${approval_id} timed out: ${summary}. It was rejected automatically.`
