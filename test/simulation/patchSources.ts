/**
 * Changes the text of modules while they are loaded, so that no product code knows of simulations: the limits that a few simulated
 * minutes would never reach become small, and planted bugs are put in to see whether the invariants find them.
 */
import { registerHooks } from "node:module"

/** A text of a file that stands there exactly once, and what takes its place. */
export interface Edit {
  /** From the repository's root. */
  readonly file: string
  readonly find: string | RegExp
  readonly replace: string
}

/** Product limits, as the simulation has them: where each is, and its value. */
const SMALL_LIMITS: ReadonlyArray<readonly [file: string, name: string, value: number]> = [
  ["src/agent/arbiter/EventLog.ts", "RESIDENT_LOG_BYTES_MAX", 60_000],
  ["src/agent/control/Replication.ts", "HEARTBEAT_PATCH_BYTES_MAX", 8000],
  ["src/agent/control/Replication.ts", "REPLICATION_EVENTS_MAX", 150],
  ["src/agent/session/CoreJob.ts", "QUESTION_WAIT_MS_MAX", 8000],
  ["src/shared/session/calls.ts", "SEEN_FILES_MAX", 2],
  ["src/shared/session/State.ts", "REPORTS_OWED_MAX", 8]
]

const smallLimits = SMALL_LIMITS.map(([file, name, value]): Edit => ({
  file,
  find: new RegExp(`const ${name} = .*`, "u"),
  replace: `const ${name} = ${value}`
}))

/**
 * A fiber that waits notes the host's asynchronous context and runs on within it. Here nothing has such a context, and to enter and leave it
 * takes a tenth of a seed.
 */
const noAsyncContext: Edit = {
  file: "effect/dist/internal/effect.js",
  find: "const captureAsyncContext = () =>",
  replace: "const captureAsyncContext = () => true ? undefined :"
}

/** Applied to the source of a file, or the reason why it cannot be. */
export const applied = (source: string, { file, find, replace }: Edit): string => {
  const parts = source.split(find)
  if (parts.length !== 2) throw new Error(`${String(find)} stands ${parts.length - 1} times in ${file}`)
  return parts.join(replace)
}

/** Has to run before the first module of the product is loaded. */
export const patchSources = (bugs: ReadonlyArray<Edit>): void => {
  const edits = [...smallLimits, noAsyncContext, ...bugs]
  registerHooks({
    load: (url, context, nextLoad) => {
      const loaded = nextLoad(url, context)
      const [path = ""] = url.split("?")
      const mine = edits.filter(({ file }) => path.endsWith(`/${file}`))
      if (mine.length === 0) return loaded
      return { ...loaded, source: mine.reduce(applied, Buffer.from(loaded.source as Uint8Array).toString("utf8")) }
    }
  })
}
