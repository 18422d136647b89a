/** A file that is written beside its place and takes its name once it is whole. */
import { randomBytes } from "node:crypto"
import { closeSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { Effect } from "effect"
import { failed } from "#src/choirctl/terminal/failure.ts"

const OWNER_FILE = 0o600
const RANDOM_BYTES = 6

/** What is done for the file that gets the name `path`, failing as a command does. */
export const onFile = <A>(path: string, act: () => A) =>
  Effect.try({
    try: act,
    catch: (cause) => failed("FILE", `${path} cannot be written: ${String(cause)}`, "choose another place for it")
  })

/** The open file, which is gone with the scope unless {@link putInPlace} has given it its name. */
export const freshFile = (path: string) => {
  const fresh = join(dirname(path), `.${basename(path)}.${randomBytes(RANDOM_BYTES).toString("hex")}`)
  return Effect.acquireRelease(
    onFile(path, () => ({ fresh, descriptor: openSync(fresh, "wx", OWNER_FILE) })),
    ({ descriptor }) =>
      Effect.sync(() => {
        closeSync(descriptor)
        rmSync(fresh, { force: true })
      })
  )
}

/** Makes the file durable before it takes its name, and the name before this returns. */
export const putInPlace = (path: string, fresh: string, descriptor: number) =>
  onFile(path, () => {
    fsyncSync(descriptor)
    renameSync(fresh, path)
    const folder = openSync(dirname(path), "r")
    fsyncSync(folder)
    closeSync(folder)
  })
