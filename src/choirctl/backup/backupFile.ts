/** The file that `choirctl db backup` makes: whole and proved, or not there (R70). */
import { fstatSync, statSync, writeFileSync } from "node:fs"
import { Effect, Schema, Stream } from "effect"
import { askStream, choirdAnswers } from "#src/choirctl/client/ask.ts"
import { runTask } from "#src/choirctl/daemon/choirdProgram.ts"
import { type CommandFailed, failed } from "#src/choirctl/terminal/failure.ts"
import { withProgress } from "#src/choirctl/terminal/print.ts"
import { root } from "#src/choirctl/terminal/root.ts"
import { type BackupItem, readBackup } from "#src/shared/events/BackupReader.ts"
import { bytesText } from "#src/shared/text/bytesText.ts"
import { freshFile, onFile, putInPlace } from "./freshFiles.ts"

/** The report of a choird that makes a backup. */
const Done = Schema.Struct({ kind: Schema.Literals(["embedded", "postgres"]), migration: Schema.Natural })

/** From the choird that runs, else from one that is started for it. */
const fill = Effect.fnUntraced(function* (path: string, descriptor: number) {
  const { home } = yield* root
  if (!(yield* choirdAnswers(home)))
    return yield* Effect.asVoid(runTask(home, ["backup"], Done, () => Effect.void, descriptor))
  yield* askStream("database", (choird) => choird.backup()).pipe(
    Stream.runForEach((bytes) => onFile(path, () => writeFileSync(descriptor, bytes)))
  )
})

/** Takes what is read back, before the end is known to be sound. */
type Use = (items: ReadonlyArray<BackupItem>) => Effect.Effect<void, CommandFailed>

/** Makes or replaces the backup at a path, reads it back, and answers what it holds. */
export const makeBackup = Effect.fn("choirctl.makeBackup")(function* (path: string, use: Use = () => Effect.void) {
  const there = statSync(path, { throwIfNoEntry: false })
  if (there !== undefined && !there.isFile())
    return yield* failed("FILE", `${path} is not a file`, "name a file for the backup")
  const { descriptor, fresh } = yield* freshFile(path)
  yield* fill(path, descriptor).pipe(withProgress(() => `backing up: ${bytesText(fstatSync(descriptor).size)}`))
  const summary = yield* readBackup(fresh, use).pipe(
    Effect.mapError(({ problem }) =>
      failed("BACKUP_UNUSABLE", `the written file is not a complete backup: ${problem}`, "choirctl logs choird")
    ),
    withProgress("reading it back")
  )
  yield* putInPlace(path, fresh, descriptor)
  return { bytes: fstatSync(descriptor).size, ...summary }
}, Effect.scoped)
