/** The facts of a call that a person is asked about: all of them, as much as a card shows, and one line. Pure. */
import type { ConfirmTool } from "#schema/Approval.ts"
import { jobOf } from "#schema/Ids.ts"
import { cutsNetwork } from "#src/choird/runtime/AgentCommand.ts"
import { counted, plural } from "#src/shared/text/counts.ts"
import { APPROVAL_SUMMARY_CHARS_MAX, visibleJson, visibleLine } from "./approvalText.ts"
import { HOSTS, PATHS, RECIPIENTS } from "./grantWords.ts"

/** Characters of one value in a card, the first of these with which all arguments fit. */
const VALUE_CHARS = [2000, 1000, 500, 250, 100] as const
/** Characters of an argument's name in a card. */
const NAME_CHARS_MAX = 100

const FIRST: ReadonlyMap<string, number> = new Map([...RECIPIENTS, ...HOSTS, ...PATHS].map((name, at) => [name, at]))

interface Argument {
  readonly name: string
  readonly text: string
}

const rankOf = ({ name }: Argument): number => FIRST.get(name.toLowerCase()) ?? FIRST.size

const isObject = (input: unknown): input is Readonly<Record<string, unknown>> =>
  typeof input === "object" && input !== null && !Array.isArray(input)

/** Whom, where and what a call reaches first, then other short values, long ones last, so that no value can push another out of a card. */
const argumentsOf = (input: Readonly<Record<string, unknown>>): ReadonlyArray<Argument> =>
  Object.entries(input)
    .map(([name, value]) => ({ name, text: visibleJson(value) }))
    .sort(
      (a, b) =>
        rankOf(a) - rankOf(b) ||
        a.text.length + a.name.length - (b.text.length + b.name.length) ||
        (a.name < b.name ? -1 : 1)
    )

/** The whole input as JSON, in the order in which a person should read it. */
const inputText = (input: unknown): string =>
  isObject(input)
    ? `{${argumentsOf(input)
        .map(({ name, text }) => `${visibleJson(name)}:${text}`)
        .join(",")}}`
    : visibleJson(input)

/** A text within a length, and how much of it is left out. */
const shortened = (text: string, chars: number): string =>
  text.length <= chars ? text : `${text.slice(0, chars).toWellFormed()}… (and ${text.length - chars} more characters)`

/** As much of an input as fits: every argument that reaches somebody, each shortened with a count, and the number of those left out. */
const inputBrief = (input: unknown, chars_max: number): string => {
  if (!isObject(input)) return shortened(visibleJson(input), Math.max(0, chars_max - 40))
  const all = argumentsOf(input)
  const partsWith = (chars: number) =>
    all.map(({ name, text }) => `${shortened(visibleJson(name), NAME_CHARS_MAX)}: ${shortened(text, chars)}`)
  const lines = VALUE_CHARS.map(partsWith).find((parts) => parts.join("\n").length <= chars_max)
  if (lines !== undefined) return lines.join("\n")
  const parts = partsWith(VALUE_CHARS[VALUE_CHARS.length - 1] ?? 0)
  let room = chars_max - 40
  const fitting = parts.findIndex((part) => (room -= part.length + 1) < 0)
  return [...parts.slice(0, fitting), `and ${parts.length - fitting} more arguments`].join("\n")
}

/** Sources that the reason names; a longer list stands whole behind the input. */
const SOURCES_SHOWN_MAX = 4

/** Files that a card names, and the characters of a path there. */
const FILES_SHOWN_MAX = 3
const PATH_SHOWN_CHARS_MAX = 100

const cut = (text: string, chars: number): string => (text.length <= chars ? text : `${text.slice(0, chars - 1)}…`)

/** `confirm_tool` on one line. */
export const confirmSummary = ({ input, tool }: ConfirmTool): string =>
  cut(`${tool} ${inputText(input)}`, APPROVAL_SUMMARY_CHARS_MAX).toWellFormed()

const sourcesText = (sources: ReadonlyArray<string>): string => {
  const more = sources.length - SOURCES_SHOWN_MAX
  return `${sources.slice(0, SOURCES_SHOWN_MAX).join(", ")}${more > 0 ? ` and ${more} more` : ""}`
}

/** Why a person is asked. Whatever the reason is, it names where the text came from that the agent has read. */
const whyText = ({ sources = [], why }: ConfirmTool): string => {
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
      `file: ${cut(visibleLine(path), path_chars_max)}, ${counted(bytes)} bytes, SHA-256 ${sha256}`
  )

/** All facts of a `confirm_tool`, with its whole input: whom and where it reaches first. `isCut`: commands can be kept from every network here. */
export const confirmText = (call: ConfirmTool, isCut = cutsNetwork(), shown: string | null = null): string => {
  const { input, sources = [] } = call
  return [
    headOf(call, isCut, shown),
    ...filesText(call, Number.POSITIVE_INFINITY),
    `input: ${inputText(input)}`,
    ...(sources.length > SOURCES_SHOWN_MAX ? [`untrusted text from: ${sources.join(", ")}`] : [])
  ].join("\n")
}

/** Its facts in at most `chars_max` characters, in which no argument or source pushes whom and where it reaches out of sight. */
export const confirmBrief = (call: ConfirmTool, chars_max: number, shown: string | null = null): string => {
  const files = filesText(call, PATH_SHOWN_CHARS_MAX)
  const more = files.length - FILES_SHOWN_MAX
  const lines = [
    headOf(call, cutsNetwork(), shown),
    ...files.slice(0, FILES_SHOWN_MAX),
    ...(more > 0 ? [`and ${plural(more, "more file")}`] : []),
    "input, shortened:"
  ]
  const head = `${lines.join("\n")}\n`
  return `${head}${inputBrief(call.input, chars_max - head.length)}`
}
