/** Brings an approved change into config.json and has it loaded and applied like an operator's. Each step may be taken again. */
import { basename, dirname, join } from "node:path"
import { isDeepStrictEqual } from "node:util"
import { Context, Effect, FileSystem, Layer, Result, Schedule } from "effect"
import type { Config } from "#schema/Config.ts"
import type { AgentId } from "#schema/Ids.ts"
import type { ConfigEdit } from "#schema/ProposedChange.ts"
import type { Approved } from "./executionSteps.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { differences } from "#src/choird/reconfiguration/resourcesInUse.ts"
import { Reconfiguration } from "#src/choird/reconfiguration/Reconfiguration.ts"
import { CONFIG_FILE, loadFiles } from "#src/shared/config/configFiles.ts"
import { problemText } from "#src/shared/config/configProblems.ts"
import { aloneWithFiles } from "#src/shared/files/homeFilesLock.ts"
import { type Before, editConfig, pathOf, withoutEdits } from "./configEdits.ts"
import { changed, ExecutionFailed, failedAs } from "./ExecutionFailed.ts"
import { valueAt } from "./jsonText.ts"

/** Tries of a step that another load of the configuration, or a silent remote, keeps from its turn, and the pause between two. */
export const PROPOSAL_TRIES_MAX = 5
export const PROPOSAL_RETRY_MS = 1000

export class ConfigSteps extends Context.Service<
  ConfigSteps,
  {
    /** Writes the edits, unless they are there; `CHANGED` where something else stands in their places, or waits to be applied. */
    write(
      approved: Approved,
      edits: ReadonlyArray<ConfigEdit>,
      before: ReadonlyArray<Before>
    ): Effect.Effect<void, ExecutionFailed>
    /**
     * Loads config.json and applies it; answers the version that runs then. Where that fails the edits are taken back, so that no later
     * start or apply takes over what was said to have failed.
     */
    apply(
      approved: Approved,
      edits: ReadonlyArray<ConfigEdit>,
      before: ReadonlyArray<Before>
    ): Effect.Effect<number, ExecutionFailed>
  }
>()("choir/choird/ConfigSteps") {
  static readonly layer = Layer.effect(
    ConfigSteps,
    Effect.suspend(() => make())
  )
}

const OWNER_FILE = 0o600
const config = failedAs("CONFIG")

const isThere = (value: unknown, edits: ReadonlyArray<ConfigEdit>) =>
  edits.every((edit) => isDeepStrictEqual(valueAt(value, pathOf(edit)), edit.value))

const make = Effect.fnUntraced(function* () {
  const fs = yield* FileSystem.FileSystem
  const reconfiguration = yield* Reconfiguration
  const store = yield* ConfigStore
  const file = join(store.home, CONFIG_FILE)

  /** Whole or not at all, also after a crash. */
  const replace = Effect.fnUntraced(function* (text: string) {
    const place = yield* fs.realPath(file)
    const fresh = join(dirname(place), `.${basename(place)}.approved`)
    yield* fs.remove(fresh, { force: true })
    const written = Effect.gen(function* () {
      const open = yield* fs.open(fresh, { flag: "wx", mode: OWNER_FILE })
      yield* open.writeAll(new TextEncoder().encode(text))
      yield* open.sync
    })
    yield* Effect.scoped(written)
    yield* fs.rename(fresh, place)
  })

  const done = Effect.map(store.current, ({ config: running, version }) => ({ running, version }))

  /** Fails where a configuration differs from what runs by more than these edits, which would be applied along with them. */
  const onlyThese = Effect.fnUntraced(function* (written: Config, edits: ReadonlyArray<ConfigEdit>) {
    const { running } = yield* done
    const own = edits.map(pathOf)
    const waiting = differences(running, written).filter(
      ({ path }) => !own.some((place) => isDeepStrictEqual(place, path))
    )
    if (waiting.length > 0)
      return yield* changed(
        `config.json has changes that do not run yet (${waiting.map(({ path }) => path.join(".")).join(", ")}): load and apply them, or take them back`
      )
  })

  const edit = Effect.fnUntraced(function* (
    agent_id: AgentId,
    edits: ReadonlyArray<ConfigEdit>,
    before: ReadonlyArray<Before>
  ) {
    const text = yield* Effect.mapError(fs.readFileString(file), config)
    const { config: written } = yield* Effect.mapError(loadFiles(store.home), config)
    const parsed: unknown = JSON.parse(text)
    const isWritten = isThere(parsed, edits)
    const moved = before.find(({ path, value }) => !isDeepStrictEqual(valueAt(parsed, path), value))
    if (!isWritten && moved !== undefined)
      return yield* changed(`${moved.path.join(".")} of config.json is another one by now`)
    yield* onlyThese(written, isWritten ? edits : [])
    if (isWritten) return
    const edited = editConfig(agent_id, text, edits)
    if (Result.isFailure(edited)) return yield* changed(edited.failure)
    yield* Effect.mapError(replace(edited.success.text), config)
  })

  const takeBack = Effect.fnUntraced(function* (edits: ReadonlyArray<ConfigEdit>, before: ReadonlyArray<Before>) {
    const text = yield* fs.readFileString(file)
    if (isThere(JSON.parse(text), edits)) yield* replace(withoutEdits(text, before))
  })

  return ConfigSteps.of({
    write: Effect.fn("ConfigSteps.write")(({ row }, edits, before) =>
      aloneWithFiles(store.home)(edit(row.agent_id, edits, before)).pipe(
        Effect.catchTag("HomeFilesBusy", (busy) => Effect.fail(config(busy)))
      )
    ),
    apply: Effect.fn("ConfigSteps.apply")(function* ({ row }, edits, before) {
      const who = `approval:${row.approval_id}`
      const load = reconfiguration.load(who, () => Effect.void)
      const applied = Effect.gen(function* () {
        yield* load
        // Somebody may have edited the file since the edits were written into it, and what is staged would take that along.
        const { config: written } = yield* Effect.mapError(loadFiles(store.home), config)
        yield* onlyThese(written, edits)
        yield* Effect.catchIf(
          reconfiguration.apply(who),
          ({ kind }) => kind === "NOTHING_STAGED",
          () => Effect.void
        )
      })
      yield* applied.pipe(
        Effect.retry({
          while: (error) => error._tag !== "ExecutionFailed" && error.kind === "BUSY",
          schedule: Schedule.spaced(PROPOSAL_RETRY_MS),
          times: PROPOSAL_TRIES_MAX
        }),
        // What was staged with them is staged anew without them.
        Effect.tapError(() =>
          Effect.ignore(Effect.andThen(aloneWithFiles(store.home)(takeBack(edits, before)), load), { log: "Warn" })
        ),
        Effect.mapError((error) =>
          error._tag === "ExecutionFailed"
            ? error
            : new ExecutionFailed({
                kind: "CONFIG",
                reason: [error.message, ...error.problems.map(problemText)].join("; ")
              })
        )
      )
      const { running, version } = yield* done
      const missing = edits.find((edit) => edit.op === "set" && !isThere(running, [edit]))
      if (missing === undefined) return version
      return yield* new ExecutionFailed({ kind: "CONFIG", reason: `${missing.path} was not taken over` })
    })
  })
})
