/** The facts of a call that a person is asked about: all of them, as much as a card shows, and one line. Pure. */
import type { ConfirmTool } from "#schema/Approval.ts"
import { jobOf } from "#schema/Ids.ts"
import type { Source } from "#schema/Source.ts"
import { cutsNetwork } from "#src/choird/runtime/AgentCommand.ts"
import { counted, plural } from "#src/shared/text/counts.ts"
import { originsOf, sourceWords, wholeSourceWords } from "#src/shared/session/sourceWords.ts"
import { APPROVAL_SUMMARY_CHARS_MAX, visibleJson, visibleLine } from "./approvalText.ts"
import { type Argument, inTurn, rankedArguments, rankedJson, REACH_CHARS_MAX } from "./rankedArguments.ts"
import { firstPart, shortened as withEllipsis } from "#src/shared/text/placeToCut.ts"

/** Characters of one value in a card that says neither whom nor where nor how much, the first of these with which all arguments fit. */
const VALUE_CHARS = [2000, 1000, 500, 250, 100] as const
/** Characters of a value of words where not everything that says whom, where or how much fits. */
const CROWDED_CHARS = 60
/** Characters for what is said about arguments that do not fit. */
const MORE_CHARS = 120

/** The facts of a call on a card. */
export interface Brief {
  readonly text: string
  /** Whether every value that may say whom, where or how much is there, none of them cut: all but words that the tool declares free. */
  readonly complete: boolean
}

/** A text within a length, and how much of it is left out. */
const shortened = (text: string, chars: number, host?: string): string => {
  if (text.length <= chars) return text
  const where = host === undefined ? "" : `; its host is ${visibleJson(host)}`
  const part = firstPart(text, chars)
  return `${part}… (and ${text.length - part.length} more characters${where})`
}

/** Letters beyond ASCII, of which some look like others. */
const isPlain = (text: string): boolean => /^[\x20-\x7E]*$/u.test(text)

const lineOf = ({ host, place, reaches, text }: Argument, chars: number): string =>
  `${place === "" ? "" : `${place}: `}${shortened(text, chars, host)}${reaches && !isPlain(text) ? " (not only ASCII letters)" : ""}`

/** An address of which a part is cut is not whole: its end may say whom and how much. */
const isWhole = ({ named, text }: Argument): boolean => named && text.length <= REACH_CHARS_MAX

/** Whether a card may leave a value out or cut it: no list of keys says which other ones are harmless. */
const mayGo = ({ evident, free }: Argument): boolean => free && !evident

/** The first lines that fit, and how many do not. */
const fitting = (lines: ReadonlyArray<string>, chars_max: number) => {
  let room = chars_max
  const end = lines.findIndex((line) => (room -= line.length + 1) < 0)
  return end < 0 ? { lines, left: 0, room } : { lines: lines.slice(0, end), left: lines.length - end, room: 0 }
}

/** As much of an input as fits: what it reaches first and whole, then the rest, each value shortened with a count, and the number of those left out. */
const inputBrief = (input: unknown, chars_max: number, free: ReadonlyArray<string>): Brief => {
  const all = rankedArguments(input, free)
  const reaching = all.filter(({ reaches }) => reaches)
  const others = all.filter(({ reaches }) => !reaches)
  const reached = (list: ReadonlyArray<Argument>, chars: number) =>
    fitting(
      list.map((argument) => lineOf(argument, argument.evident ? REACH_CHARS_MAX : chars)),
      chars_max - MORE_CHARS
    )
  const plain = reached(reaching, REACH_CHARS_MAX)
  const first = plain.left === 0 ? plain : reached(inTurn(reaching), CROWDED_CHARS)
  const linesWith = (chars: number) => others.map((argument) => lineOf(argument, chars))
  const chars = VALUE_CHARS.find((chars) => linesWith(chars).join("\n").length <= first.room) ?? VALUE_CHARS[4]
  const rest = fitting(linesWith(chars), first.room)
  const isSeen = ({ named, text }: Argument, at: number) => at < rest.lines.length && named && text.length <= chars
  return {
    text: [
      ...first.lines,
      ...(first.left > 0 ? [`and ${first.left} more that say whom, where or how much`] : []),
      ...rest.lines,
      ...(rest.left > 0 ? [`and ${plural(rest.left, "more argument")}`] : [])
    ].join("\n"),
    complete:
      plain.left === 0 &&
      reaching.every(isWhole) &&
      others.every((argument, at) => isSeen(argument, at) || mayGo(argument))
  }
}

/** Sources that the reason names; a longer list stands whole behind the input. */
const SOURCES_SHOWN_MAX = 4

/** Files that a card names, and the characters of a path there. */
const FILES_SHOWN_MAX = 3
const PATH_SHOWN_CHARS_MAX = 100

/** `confirm_tool` on one line. */
export const confirmSummary = ({ input, tool }: ConfirmTool): string =>
  withEllipsis(`${tool} ${rankedJson(input)}`, APPROVAL_SUMMARY_CHARS_MAX)

const sourcesText = (sources: ReadonlyArray<Source>): string => {
  const more = sources.length - SOURCES_SHOWN_MAX
  const named = sources.slice(0, SOURCES_SHOWN_MAX).map((source) => sourceWords(source))
  return `${named.join(", ")}${more > 0 ? ` and ${more} more` : ""}`
}

/** Why a person is asked. Whatever the reason is, it names where the text came from that the agent has read. */
const whyText = ({ sources: all = [], why }: ConfirmTool): string => {
  const sources = originsOf(all)
  const read = sources.length === 0 ? "" : ` from ${sourcesText(sources)}`
  if (why === "new_recipients")
    return `it writes to an address that this account has not written to before${read === "" ? "" : `; the agent has read untrusted text${read}`}`
  if (why === "tainted") return `it acts outside the workspace, and the agent has read untrusted text${read}`
  const reason = "it acts outside the workspace, and each such call is confirmed here"
  return read === "" ? reason : `${reason}; the agent has read untrusted text${read}`
}

const askedBy = ({ lane }: ConfirmTool): string => {
  const job = jobOf(lane)
  return job === undefined ? "the conversation" : `the job ${job}`
}

/** The network of a command that a person is asked about. */
const networkText = ({ tool }: ConfirmTool, isCut: boolean): ReadonlyArray<string> => {
  if (tool.replaceAll("-", ".") !== "choir.exec") return []
  return [
    isCut
      ? "network: this command asks for network access, which it gets only if you approve (enforced here)"
      : "network: access cannot be blocked on this host, so every command counts as acting outside"
  ]
}

/** @param shown the page that the call acts on, as choird saw it. */
const headOf = (call: ConfirmTool, isCut: boolean, shown: string | null): string =>
  [
    `tool: ${call.tool}`,
    ...(shown === null ? [] : [shown]),
    `asked by: ${askedBy(call)}`,
    `why you are asked: ${whyText(call)}`,
    ...networkText(call, isCut)
  ].join("\n")

const filesText = ({ files = [] }: ConfirmTool, path_chars_max: number): ReadonlyArray<string> =>
  files.map(
    ({ bytes, path, sha256 }) =>
      `file: ${withEllipsis(visibleLine(path), path_chars_max)}, ${counted(bytes)} bytes, SHA-256 ${sha256}`
  )

/** All facts of a `confirm_tool`, with its whole input: whom and where it reaches first. `isCut`: commands can be kept from every network here. */
export const confirmText = (call: ConfirmTool, isCut = cutsNetwork(), shown: string | null = null): string => {
  const { input } = call
  const sources = originsOf(call.sources ?? [])
  return [
    headOf(call, isCut, shown),
    ...filesText(call, Number.POSITIVE_INFINITY),
    `input: ${rankedJson(input)}`,
    ...(sources.length > SOURCES_SHOWN_MAX ? [`untrusted text from: ${sources.map(wholeSourceWords).join(", ")}`] : [])
  ].join("\n")
}

/**
 * Its facts in at most `chars_max` characters, in which no argument or source pushes whom and where it reaches out of sight.
 *
 * @param free the arguments that its tool declares free text. */
export const confirmBrief = (
  call: ConfirmTool,
  chars_max: number,
  free: ReadonlyArray<string>,
  shown: string | null = null
): Brief => {
  const files = filesText(call, PATH_SHOWN_CHARS_MAX)
  const more = files.length - FILES_SHOWN_MAX
  const lines = [
    headOf(call, cutsNetwork(), shown),
    ...files.slice(0, FILES_SHOWN_MAX),
    ...(more > 0 ? [`and ${plural(more, "more file")}`] : []),
    "input, shortened:"
  ]
  const head = `${lines.join("\n")}\n`
  const input = inputBrief(call.input, chars_max - head.length, free)
  return { ...input, text: `${head}${input.text}` }
}
