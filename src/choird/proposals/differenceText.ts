/**
 * What changes between two states of a repository, every changed line in full, with sizes and digests (D24). Made by choird from the files
 * alone; whatever cannot be seen is written as its escape and counted. Pure.
 */
import { isUtf8 } from "node:buffer"
import { Result } from "effect"
import { UNSEEN, unseenEscaped } from "#src/choird/approvals/approvalText.ts"
import type { RepoFile } from "#src/choird/repos/Tree.ts"
import { sha256 } from "#src/shared/hashChain.ts"

export interface Difference {
  /** Lines of a header begin without a sign, others with `+`, `-` or a blank. */
  readonly text: string
  /** Characters that are shown as escapes. */
  readonly unseen: number
  readonly paths: ReadonlyArray<string>
}

interface Side {
  readonly lines: ReadonlyArray<string>
  readonly isOpen: boolean
}

const side = (file: RepoFile | undefined): Side => {
  const text = file === undefined ? "" : Buffer.from(file.bytes).toString("utf8")
  if (text === "") return { lines: [], isOpen: false }
  const lines = text.split("\n")
  return text.endsWith("\n") ? { lines: lines.slice(0, -1), isOpen: false } : { lines, isOpen: true }
}

/** What is the same before and after is left out and counted; everything between is shown. */
const lineChanges = (before: Side, after: Side): ReadonlyArray<string> => {
  const [old, fresh] = [before.lines, after.lines]
  let head = 0
  while (head < old.length && head < fresh.length && old[head] === fresh[head]) head += 1
  let tail = 0
  const most = Math.min(old.length, fresh.length) - head
  while (tail < most && old[old.length - 1 - tail] === fresh[fresh.length - 1 - tail]) tail += 1
  const same = (count: number) => (count === 0 ? [] : [` (${count} ${count === 1 ? "line" : "lines"} the same)`])
  return [
    ...same(head),
    ...old.slice(head, old.length - tail).map((line) => `-${line}`),
    ...fresh.slice(head, fresh.length - tail).map((line) => `+${line}`),
    ...same(tail),
    ...(before.isOpen === after.isOpen || fresh.length === 0
      ? []
      : [after.isOpen ? " (no line break at the end any more)" : " (a line break at the end)"])
  ]
}

const mode = ({ executable }: RepoFile) => (executable ? ", executable" : "")

const header = (before: RepoFile | undefined, after: RepoFile | undefined): string => {
  const file = after ?? before
  if (file === undefined) return ""
  const what = before === undefined ? "new file" : after === undefined ? "removed file" : "changed file"
  const turned =
    before !== undefined && after !== undefined && before.executable !== after.executable
      ? after.executable
        ? ", becomes executable"
        : ", is executable no more"
      : mode(file)
  const size = after === undefined ? "" : `, ${after.bytes.length} bytes, sha256 ${sha256(after.bytes)}`
  return `${what} ${file.path}${turned}${size}`
}

const isSame = (a: RepoFile | undefined, b: RepoFile | undefined) =>
  a !== undefined && b !== undefined && a.executable === b.executable && Buffer.compare(a.bytes, b.bytes) === 0

/** Fails with the path of a changed file that is no text, which nobody could read. */
export const difference = (
  before: ReadonlyArray<RepoFile>,
  after: ReadonlyArray<RepoFile>
): Result.Result<Difference, string> => {
  const old = new Map(before.map((file) => [file.path, file]))
  const fresh = new Map(after.map((file) => [file.path, file]))
  const paths = [...new Set([...old.keys(), ...fresh.keys()])]
    .filter((path) => !isSame(old.get(path), fresh.get(path)))
    .sort()
  const unreadable = paths.find((path) =>
    [old.get(path), fresh.get(path)].some((file) => file !== undefined && !isUtf8(file.bytes))
  )
  if (unreadable !== undefined) return Result.fail(unreadable)
  const text = paths
    .flatMap((path) => [
      header(old.get(path), fresh.get(path)),
      ...lineChanges(side(old.get(path)), side(fresh.get(path)))
    ])
    .join("\n")
  let unseen = 0
  const shown = text.replaceAll(UNSEEN, (character) => {
    if (character === "\n" || character === "\t") return character
    unseen += 1
    return unseenEscaped(character)
  })
  return Result.succeed({ text: shown, unseen, paths })
}
