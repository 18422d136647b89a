/**
 * The words of a grant and the calls inside them. A grant is made from one call that a person saw, and covers a later one only if its
 * arguments are the same, present or absent, but for those that the tool declares to be free text. Pure.
 */
import type { ConfirmTool } from "#schema/Approval.ts"
import { GrantWords } from "#schema/Grant.ts"
import { Option, Schema } from "effect"
import { EXEC_TOOL } from "#src/shared/image/builtInTools.ts"
import { actsOnPage, BROWSE_TOOL } from "#src/shared/web/hostQueries.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { visibleLine } from "./approvalText.ts"

/** Characters of a grant's words; what does not fit a card is not granted. */
export const GRANT_WORDS_CHARS_MAX = 600
/** Digits of a file's SHA-256 in words for a person. */
const FILE_DIGITS = 12

type Call = Pick<ConfirmTool, "tool" | "input" | "files" | "reads_unnamed">
type Given = GrantWords["given"][number]

const isObject = (input: unknown): input is Readonly<Record<string, unknown>> =>
  typeof input === "object" && input !== null && !Array.isArray(input)

/** Acts on the page that is open, which the input does not name: the same input is another act on another page. */
const actsOnAnyPage = ({ input, tool }: Call): boolean =>
  tool === BROWSE_TOOL && (!isObject(input) || typeof input["action"] !== "string" || actsOnPage(input["action"]))

/** Whether what it does may follow from files whose contents no grant can fix. An agent of an earlier Choir names no files of a command. */
const isUntold = ({ files, reads_unnamed, tool }: Call): boolean =>
  reads_unnamed === true || (tool === EXEC_TOOL && files === undefined)

const filesOf = ({ files = [] }: Call): GrantWords["files"] =>
  files.map(({ path, sha256 }) => ({ path, sha256 })).sort((a, b) => (a.path < b.path ? -1 : 1))

const nameOf = (name: string): string => (/^[\w-]+$/u.test(name) ? name : canonicalJson(name))

const argumentText = ({ name, value }: Given): string => `${nameOf(name)}: ${value ?? "any text"}`

/** A grant's words for a person: every argument with its value, those that say whom and where before those with any text. */
export const wordsText = ({ files, given, tool }: GrantWords): string => {
  const fixed = given.filter(({ value }) => value !== undefined)
  const free = given.filter(({ value }) => value === undefined)
  const listed = [...fixed, ...free].map(argumentText).join(", ")
  const named = files.map(({ path, sha256 }) => `${path} (SHA-256 ${sha256.slice(0, FILE_DIGITS)}…)`)
  return visibleLine(
    [
      given.length === 0
        ? `calls of ${tool} without arguments`
        : `calls of ${tool} with ${listed}, and no other arguments`,
      ...(named.length === 0 ? [] : [`as long as these files stay as they are: ${named.join(", ")}`])
    ].join("; ")
  )
}

/** A stored grant's words; none for those of an earlier Choir, which left more open than a person saw. */
export const readWords = Schema.decodeUnknownOption(GrantWords, { onExcessProperty: "error" })

/**
 * The words of a grant made from a call; `undefined` where the call does not say all that it does, or the words would be longer than a card
 * shows.
 * @param free the arguments that the tool declares free.
 */
export const grantOf = (call: Call, free: ReadonlyArray<string>): GrantWords | undefined => {
  const { input, tool } = call
  if (!isObject(input) || actsOnAnyPage(call) || isUntold(call)) return undefined
  const given = Object.keys(input)
    .sort()
    .map((name): Given =>
      free.includes(name) && typeof input[name] === "string" ? { name } : { name, value: canonicalJson(input[name]) }
    )
  const grant = Option.getOrUndefined(readWords({ tool, given, files: filesOf(call) }))
  return grant === undefined || wordsText(grant).length > GRANT_WORDS_CHARS_MAX ? undefined : grant
}

const isGiven = (input: Readonly<Record<string, unknown>>, { name, value }: Given): boolean => {
  if (!Object.hasOwn(input, name)) return false
  const now = input[name]
  return value === undefined ? typeof now === "string" : canonicalJson(now) === value
}

/** Whether a call is inside the words of a grant. */
export const covers = ({ files, given, tool }: GrantWords, call: Call): boolean => {
  const { input } = call
  if (tool !== call.tool || !isObject(input) || actsOnAnyPage(call) || isUntold(call)) return false
  return (
    Object.keys(input).length === given.length &&
    given.every((one) => isGiven(input, one)) &&
    canonicalJson(files) === canonicalJson(filesOf(call))
  )
}
