/** Edits of config.json that an agent proposes. They are written to the file, then loaded and applied like an operator's. */
import { join } from "node:path"
import { isDeepStrictEqual } from "node:util"
import { Context, Effect, FileSystem, Layer, Result, Schedule } from "effect"
import type { Config } from "#schema/Config.ts"
import type { ConfigEdit } from "#schema/ProposedChange.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Reconfiguration } from "#src/choird/reconfiguration/Reconfiguration.ts"
import { differences } from "#src/choird/reconfiguration/resourcesInUse.ts"
import { CONFIG_FILE, loadFiles } from "#src/shared/config/configFiles.ts"
import { problemText } from "#src/shared/config/configProblems.ts"
import { valueAt } from "#src/shared/config/jsonEdits.ts"
import { withHomeFilesLock } from "#src/shared/files/homeFilesLock.ts"
import { makeReplaceConfig } from "#src/choird/reconfiguration/ConfigWriter.ts"
import { AgentSteps } from "./AgentSteps.ts"
import { editConfig, editText, isBinding, pathOf, withoutEdits } from "./configEdits.ts"
import {
  type Before,
  done,
  type Execution,
  next,
  type Next,
  PROPOSAL_RETRY_MS,
  PROPOSAL_TRIES_MAX
} from "#src/choird/approvals/Execution.ts"
import { changed, ExecutionFailed, failedAs } from "#src/choird/approvals/ExecutionFailed.ts"
import type { Proposal } from "#src/choird/approvals/Proposal.ts"
import { configText } from "./proposalText.ts"
import {
  badProposal,
  type Preview,
  type ProposalType,
  type Proposer,
  unreachable
} from "#src/choird/approvals/ProposalType.ts"

type Edits = Extract<Proposal, { kind: "config_change" }>

export class ConfigChange extends Context.Service<ConfigChange, ProposalType<Edits>>()("choir/choird/ConfigChange") {
  static readonly layer = Layer.effect(
    ConfigChange,
    Effect.suspend(() => make())
  )
}

const config = failedAs("CONFIG")

const isThere = (value: unknown, edits: ReadonlyArray<ConfigEdit>) =>
  edits.every((edit) => isDeepStrictEqual(valueAt(value, pathOf(edit)), edit.value))

/** The agent's bindings that its next start takes from the new defaults. */
const rebound = ({ edits }: Edits): ReadonlySet<string> =>
  new Set(edits.filter(isBinding).map((edit) => pathOf(edit).at(-1) ?? ""))

/** Fails if a configuration differs from the running one by more than these edits, which would be applied along with them. */
const onlyThese = Effect.fnUntraced(function* (running: Config, written: Config, edits: ReadonlyArray<ConfigEdit>) {
  const own = edits.map(pathOf)
  const waiting = differences(running, written).filter(
    ({ path }) => !own.some((place) => isDeepStrictEqual(place, path))
  )
  if (waiting.length > 0)
    return yield* changed(
      `config.json has unapplied changes (${waiting.map(({ path }) => path.join(".")).join(", ")}): load and apply them, or undo them`
    )
})

/** Writes the edits to config.json, and reverts them. */
const makeEditFile = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const store = yield* ConfigStore
  const file = join(store.home, CONFIG_FILE)

  const replace = yield* makeReplaceConfig

  const write = Effect.fnUntraced(function* ({ approved: { row }, facts, proposal: { edits } }: Execution<Edits>) {
    const text = yield* Effect.mapError(fs.readFileString(file), config)
    const { config: written } = yield* Effect.mapError(loadFiles(store.home), config)
    const parsed: unknown = JSON.parse(text)
    const isWritten = isThere(parsed, edits)
    const moved = facts.before?.find(({ path, value }) => !isDeepStrictEqual(valueAt(parsed, path), value))
    if (!isWritten && moved !== undefined)
      return yield* changed(`${moved.path.join(".")} of config.json was changed after this was proposed`)
    const { config: running } = yield* store.current
    yield* onlyThese(running, written, isWritten ? edits : [])
    if (isWritten) return
    const edited = editConfig(row.agent_id, text, edits)
    if (Result.isFailure(edited)) return yield* changed(edited.failure)
    yield* Effect.mapError(replace(edited.success.text), config)
  })

  const takeBack = Effect.fnUntraced(function* (edits: ReadonlyArray<ConfigEdit>, before: ReadonlyArray<Before>) {
    const text = yield* fs.readFileString(file)
    if (isThere(JSON.parse(text), edits)) yield* replace(withoutEdits(text, before))
  })

  const alone = withHomeFilesLock(store.home)
  return {
    /** Writes the edits, unless they are there; `CHANGED` if the places hold something else, or other changes wait to be applied. */
    write: (execution: Execution<Edits>) =>
      Effect.catchTag(alone(write(execution)), "HomeFilesBusy", (busy) => Effect.fail(config(busy))),
    takeBack: ({ facts, proposal }: Execution<Edits>) => alone(takeBack(proposal.edits, facts.before ?? []))
  }
})

/**
 * Loads config.json and applies it; returns the version that then runs. If that fails, the edits are reverted, so that no later start or
 * apply picks up a change that was reported as failed.
 */
const makeApply = Effect.fnUntraced(function* (
  takeBack: (execution: Execution<Edits>) => Effect.Effect<void, unknown>
) {
  const reconfiguration = yield* Reconfiguration
  const store = yield* ConfigStore
  return Effect.fnUntraced(function* (execution: Execution<Edits>) {
    const { edits } = execution.proposal
    const who = `approval:${execution.approved.row.approval_id}`
    const load = reconfiguration.load(who, () => Effect.void)
    const applied = Effect.gen(function* () {
      yield* load
      // Somebody may have edited the file since the edits were written, and staging would include that.
      const { config: written } = yield* Effect.mapError(loadFiles(store.home), config)
      yield* onlyThese((yield* store.current).config, written, edits)
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
      // The configuration that was staged with them is staged again without them.
      Effect.tapError(() => Effect.ignore(Effect.andThen(takeBack(execution), load), { log: "Warn" })),
      Effect.mapError((error) =>
        error._tag === "ExecutionFailed"
          ? error
          : new ExecutionFailed({
              kind: "CONFIG",
              reason: [error.message, ...error.problems.map(problemText)].join("; ")
            })
      )
    )
    const { config: running, version } = yield* store.current
    const missing = edits.find((edit) => edit.op === "set" && !isThere(running, [edit]))
    if (missing === undefined) return version
    return yield* new ExecutionFailed({ kind: "CONFIG", reason: `${missing.path} was not applied` })
  })
})

const make = Effect.fnUntraced(function* () {
  const agents = yield* AgentSteps
  const fs = yield* FileSystem.FileSystem
  const { home } = yield* ConfigStore
  const file = yield* makeEditFile
  const apply = yield* makeApply(file.takeBack)

  const preview = Effect.fn("ConfigChange.preview")(function* ({ agent_id }: Proposer, proposal: Edits) {
    const text = yield* Effect.mapError(fs.readFileString(join(home, CONFIG_FILE)), unreachable)
    const edited = yield* Effect.try({
      try: () => editConfig(agent_id, text, proposal.edits),
      catch: () => badProposal("config.json is not valid JSON at the moment")
    })
    if (Result.isFailure(edited)) return yield* badProposal(edited.failure)
    const { before } = edited.success
    const lines = proposal.edits.map((edit, index) => editText(edit, before[index] ?? { path: [] }))
    return { facts: { before }, shown: configText(proposal, lines) } satisfies Preview
  })

  return ConfigChange.of({
    preview,
    execute: Effect.fn("ConfigChange.execute")(function* (
      execution,
      { job, step }
    ): Effect.fn.Return<Next, ExecutionFailed> {
      const { approved, proposal } = execution
      switch (step) {
        case "write":
          yield* file.write(execution)
          return next("apply", job)
        case "apply": {
          const version = yield* apply(execution)
          const outcome = `config.json was changed and is applied as version ${version}`
          return rebound(proposal).size === 0 ? done(outcome) : yield* agents.afterChange(approved, job, outcome)
        }
        case "update":
          yield* agents.update(approved, job, rebound(proposal))
          return done("config.json was changed and is applied, and the agent runs with it")
        default:
          return yield* Effect.die(new Error(`a change of config.json has no step ${step}`))
      }
    })
  })
})
