/** The file that `choirctl db backup` makes: whole and proved, or not there (R70). */
import { randomBytes } from "node:crypto"
import { closeSync, fstatSync, fsyncSync, openSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { Effect, Schema, Stream } from "effect"
import { readBackup } from "#src/shared/BackupReader.ts"
import { askStream } from "./ask.ts"
import { choirdAnswers } from "./choirdAnswers.ts"
import { runTask } from "./choirdProgram.ts"
import { failed } from "./failure.ts"
import { withProgress } from "./progress.ts"
import { sizeText } from "./render/size.ts"
import { root } from "./root.ts"

const OWNER_FILE = 0o600

const attempt = <A>(path: string, run: () => A) =>
  Effect.try({
    try: run,
    catch: (cause) =>
      failed("FILE", `${path} cannot be written: ${String(cause)}`, "choose another place for the backup")
  })

/** What a choird that does a backup prints beside it. */
const Done = Schema.Struct({ kind: Schema.Literals(["embedded", "postgres"]), migration: Schema.Natural })

/** From the choird that runs, else from one that is started for it. */
const fill = Effect.fnUntraced(function* (path: string, descriptor: number) {
  const { home } = yield* root
  if (!(yield* choirdAnswers(home)))
    return yield* Effect.asVoid(runTask(home, ["backup"], Done, () => Effect.void, descriptor))
  yield* askStream("database", (choird) => choird.backup()).pipe(
    Stream.runForEach((bytes) => attempt(path, () => writeFileSync(descriptor, bytes)))
  )
})

/** A file beside its place, which is gone with the scope unless it was put there. */
const freshFile = (path: string) => {
  const fresh = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString("hex")}`)
  return Effect.acquireRelease(
    attempt(path, () => ({ fresh, descriptor: openSync(fresh, "wx", OWNER_FILE) })),
    ({ descriptor }) =>
      Effect.sync(() => {
        closeSync(descriptor)
        rmSync(fresh, { force: true })
      })
  )
}

/** Makes the file durable before it takes its name, and the name before this returns. */
export const putInPlace = (path: string, fresh: string, descriptor: number) =>
  attempt(path, () => {
    fsyncSync(descriptor)
    renameSync(fresh, path)
    const folder = openSync(dirname(path), "r")
    fsyncSync(folder)
    closeSync(folder)
  })

/** Makes or replaces the backup at a path, reads it back, and answers what it holds. */
export const makeBackup = Effect.fn("choirctl.makeBackup")(function* (path: string) {
  const there = statSync(path, { throwIfNoEntry: false })
  if (there !== undefined && !there.isFile())
    return yield* failed("FILE", `${path} is not a file`, "name a file for the backup")
  const { descriptor, fresh } = yield* freshFile(path)
  yield* fill(path, descriptor).pipe(withProgress(() => `backing up: ${sizeText(fstatSync(descriptor).size)}`))
  const summary = yield* readBackup(fresh, () => Effect.void).pipe(
    Effect.mapError(({ problem }) =>
      failed("BACKUP_UNUSABLE", `what was written is not a whole backup: ${problem}`, "choirctl logs choird")
    ),
    withProgress("reading it back")
  )
  yield* putInPlace(path, fresh, descriptor)
  return { bytes: fstatSync(descriptor).size, ...summary }
}, Effect.scoped)
