/**
 * Files that go to the person: those that a tool left in `.choirtmp/send` and named in its result, and those that a call names itself.
 * A copy of each is kept under the digest of its bytes, so that a later change of the file does not change what is sent.
 */
import { Effect, Result, type Schema } from "effect"
import { SEND_FOLDER, SENT_COPIES, SENT_FILE_BYTES_MAX, SENT_FILES_MAX, type SentFile } from "#schema/SentFile.ts"
import { counted } from "#src/shared/text/counts.ts"
import { PathRefused } from "#src/agent/workspace/PathRefused.ts"
import type { Workspace } from "#src/agent/workspace/Workspace.ts"
import type { ToolOutcome } from "./Tool.ts"

/** Copies that are kept, and their bytes together; the oldest go first. choird takes its own as soon as it has the event. */
const KEPT = { files: 100, bytes: 1024 * 1024 * 1024, file_bytes: SENT_FILE_BYTES_MAX, shared: true }
/** Texts of a result, and lines of one, that are looked at. */
const TEXTS_MAX = 1000
const LINES_MAX = 2000
/** Characters of a line that may be a path. */
const LINE_CHARS_MAX = 512
const LEVELS_MAX = 20

type Files = Workspace["Service"]

/** The last part of a path. */
export const fileNameOf = (path: string): string => path.split("/").at(-1) ?? path

const withWords = (error: PathRefused): { readonly message: string } =>
  error.reason === "too_large"
    ? {
        message: `${JSON.stringify(fileNameOf(error.path))} is larger than the ${counted(SENT_FILE_BYTES_MAX)} bytes that can be sent; make it smaller or split it`
      }
    : error

/** Keeps a copy of a file of the workspace for choird, which sends it. */
export const takeForSending = (workspace: Files, path: string): Effect.Effect<SentFile, { readonly message: string }> =>
  Effect.gen(function* () {
    const file = yield* workspace.read(path, SENT_FILE_BYTES_MAX)
    if (file.bytes.length === 0)
      return yield* Effect.fail({ message: `${JSON.stringify(file.path)} is empty, and empty files cannot be sent` })
    yield* workspace.keep(`${SENT_COPIES}/${file.sha256}`, file.bytes, KEPT)
    return { path: file.path, sha256: file.sha256, bytes: file.bytes.length } satisfies SentFile
  }).pipe(Effect.mapError((error) => (error instanceof PathRefused ? withWords(error) : error)))

/** The words for the model about files that go out. */
const sentNote = (files: ReadonlyArray<SentFile>): string =>
  `sent to the user: ${files.map(({ path }) => fileNameOf(path)).join(", ")}`

/** All texts of a JSON value, up to a number of them. */
const textsOf = (value: Schema.Json, found: Array<string> = [], level = 0): ReadonlyArray<string> => {
  if (found.length >= TEXTS_MAX || level > LEVELS_MAX) return found
  if (typeof value === "string") found.push(value)
  else if (typeof value === "object" && value !== null)
    for (const part of Object.values(value)) textsOf(part, found, level + 1)
  return found
}

/** The names of files in the send folder that a result has as a text, or as a line of one. */
const namesIn = (root: string, { output }: ToolOutcome): ReadonlyArray<string> => {
  const prefixes = [SEND_FOLDER, `./${SEND_FOLDER}`, `/workspace/${SEND_FOLDER}`, `${root}/${SEND_FOLDER}`]
  const names = textsOf(output ?? null).flatMap((text) =>
    text
      .split("\n", LINES_MAX)
      .map((line) => line.trim())
      .filter((line) => line.length <= LINE_CHARS_MAX)
      .flatMap((line) => {
        const prefix = prefixes.find((one) => line.startsWith(`${one}/`))
        return prefix === undefined ? [] : [line.slice(prefix.length + 1)]
      })
      .filter((name) => name !== "" && !name.includes("/") && !name.startsWith("."))
  )
  return [...new Set(names)]
}

const NOTHING: ReadonlyMap<string, string> = new Map()

/** The files in the send folder now. Where it cannot be listed, nothing is sent. */
const versionsOf = (workspace: Files, create = false) =>
  Effect.orElseSucceed(workspace.versions(SEND_FOLDER, create), () => NOTHING)

/** Looks at the send folder before a tool runs, and makes it for one that uses it. The answer takes from its outcome what it left there and names. */
export const watchSendFolder = Effect.fnUntraced(function* (workspace: Files, create = false) {
  const before = yield* versionsOf(workspace, create)
  return Effect.fnUntraced(function* (outcome: ToolOutcome) {
    const names = outcome.status === "success" ? namesIn(workspace.root, outcome) : []
    if (names.length === 0) return outcome
    const after = yield* versionsOf(workspace)
    const left = names.filter((name) => after.has(name) && after.get(name) !== before.get(name))
    const taken = yield* Effect.forEach(left.slice(0, SENT_FILES_MAX), (name) =>
      Effect.result(takeForSending(workspace, `${SEND_FOLDER}/${name}`))
    )
    const files = taken.flatMap((one) => (Result.isSuccess(one) ? [one.success] : []))
    const notes = [
      ...(files.length === 0 ? [] : [sentNote(files)]),
      ...taken.flatMap((one) => (Result.isFailure(one) ? [`not sent: ${one.failure.message}`] : [])),
      ...(left.length > SENT_FILES_MAX ? [`not sent: more than ${SENT_FILES_MAX} files of one call`] : [])
    ]
    if (notes.length === 0) return outcome
    return { ...outcome, ...(files.length === 0 ? {} : { sends: { files } }), notes }
  })
})
