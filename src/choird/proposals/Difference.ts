/**
 * The difference between two states of a repository that a person approves: every changed line in full, with sizes and digests (D24).
 * choird makes it from the files alone; invisible characters are written as escapes and counted. Pure.
 */
import { isUtf8 } from "node:buffer"
import { Result, TextDiff } from "effect"
import { UNSEEN } from "#src/shared/text/unseenCharacters.ts"
import { compactJson } from "./compactJson.ts"
import { unseenEscaped } from "#src/choird/approvals/approvalText.ts"
import { digestOf, type HeldFile, isHeld, type RepoFile, sizeOf } from "#src/choird/repos/Tree.ts"
import { sha256 } from "#src/shared/events/hashChain.ts"

/** The longest proposal that a person is shown; a longer one is refused, since nobody would read it. */
export const PROPOSAL_SHOWN_CHARS_MAX = 64_000
/**
 * The bytes that choird reads to find the difference: all changed files, before and after. The multiple leaves room for a small edit
 * in a large file, and keeps the work on choird's one thread below a second.
 */
const PROPOSAL_READ_BYTES_MAX = 8 * PROPOSAL_SHOWN_CHARS_MAX

/** Unchanged lines shown before and after each change. */
const CONTEXT_LINES = 3
/**
 * Changed lines that the search for the smallest diff considers at once, since its work grows with their number. A region with more is
 * shown as correct but perhaps longer hunks.
 */
const DIFF_EDITS_MAX = 128

export interface Difference {
  /** A header for each file, then its hunks: lines of the file begin with `+`, `-` or a blank. */
  readonly text: string
  /** Characters that are shown as escapes. */
  readonly unseen: number
  readonly paths: ReadonlyArray<string>
}

const textOf = (file: HeldFile | undefined): string =>
  file === undefined ? "" : Buffer.from(file.bytes).toString("utf8")

/** The hunks of a unified diff; unchanged lines beyond CONTEXT_LINES of a change are left out. */
const hunks = (before: HeldFile | undefined, after: HeldFile | undefined): ReadonlyArray<string> => {
  const edits = TextDiff.lines(textOf(before), textOf(after), { maxEdits: DIFF_EDITS_MAX })
  const text = TextDiff.unified(edits, { context: CONTEXT_LINES })
  return text === "" ? [] : text.slice(0, -1).split("\n")
}

/** The lines of a new file of JSON, with fewer line ends than it has: a skill's would fill three screens of a phone. */
const newJson = (before: HeldFile | undefined, after: HeldFile | undefined): ReadonlyArray<string> | undefined => {
  const isJson = before === undefined && after?.path.endsWith(".json") === true
  const lines = isJson ? compactJson(textOf(after)) : undefined
  return lines === undefined ? undefined : ["its JSON, on fewer lines:", ...lines.map((line) => `+${line}`)]
}

const mode = ({ executable }: HeldFile) => (executable ? ", executable" : "")

const header = (before: HeldFile | undefined, after: HeldFile | undefined): string => {
  const file = after ?? before
  if (file === undefined) return ""
  const what = before === undefined ? "new file" : after === undefined ? "removed file" : "changed file"
  const turned =
    before !== undefined && after !== undefined && before.executable !== after.executable
      ? after.executable
        ? ", becomes executable"
        : ", no longer executable"
      : mode(file)
  const size = after === undefined ? "" : `, ${after.bytes.length} bytes, sha256 ${sha256(after.bytes)}`
  return `${what} ${file.path}${turned}${size}`
}

const isSame = (a: RepoFile | undefined, b: RepoFile | undefined) =>
  a !== undefined && b !== undefined && a.executable === b.executable && digestOf(a) === digestOf(b)

/** The reason not to show a change: a changed file is not text, or there is more than a person would read. */
export type NotShown =
  | { readonly type: "binary"; readonly path: string }
  | { readonly type: "large"; readonly reason: string }

const large = (reason: string) => Result.fail({ type: "large" as const, reason })
export const MUCH_TO_READ = `the person would have to read more than the ${PROPOSAL_SHOWN_CHARS_MAX} characters that are shown at most`

/** The refusal of changed files larger than choird reads; `bytes` counts them before and after the change. */
export const muchChanged = (bytes: number): string | undefined =>
  bytes > PROPOSAL_READ_BYTES_MAX
    ? `the changed files have ${bytes} bytes, before and after, and at most ${PROPOSAL_READ_BYTES_MAX} are read for the ${PROPOSAL_SHOWN_CHARS_MAX} characters that a person is shown`
    : undefined

/** Invisible characters as their escapes, and how many there were. */
const visible = (text: string) => {
  let unseen = 0
  const shown = text.replaceAll(UNSEEN, (character) => {
    if (character === "\n" || character === "\t") return character
    unseen += 1
    return unseenEscaped(character)
  })
  return { text: shown, unseen }
}

/** PROPOSAL_READ_BYTES_MAX bounds the work for any files; larger ones are refused unread. */
export const difference = (
  before: ReadonlyArray<RepoFile>,
  after: ReadonlyArray<RepoFile>
): Result.Result<Difference, NotShown> => {
  const old = new Map(before.map((file) => [file.path, file]))
  const fresh = new Map(after.map((file) => [file.path, file]))
  const paths = [...new Set([...old.keys(), ...fresh.keys()])]
    .filter((path) => !isSame(old.get(path), fresh.get(path)))
    .sort()
  const sides = paths.flatMap((path) => [old.get(path) ?? [], fresh.get(path) ?? []].flat())
  const much = muchChanged(sides.reduce((sum, file) => sum + sizeOf(file), 0))
  if (much !== undefined) return large(much)
  const lines: Array<string> = []
  let chars = 0
  for (const path of paths) {
    const [was, is] = [old.get(path), fresh.get(path)]
    // Contents that were not requested exceed the limit.
    if ((was !== undefined && !isHeld(was)) || (is !== undefined && !isHeld(is))) return large(MUCH_TO_READ)
    if ([was, is].some((file) => file !== undefined && !isUtf8(file.bytes)))
      return Result.fail({ type: "binary", path })
    const changes = [header(was, is), ...(newJson(was, is) ?? hunks(was, is))]
    for (const line of changes) chars += line.length + 1
    if (chars > PROPOSAL_SHOWN_CHARS_MAX) return large(MUCH_TO_READ)
    lines.push(...changes)
  }
  return Result.succeed({ ...visible(lines.join("\n")), paths })
}
