/** A workspace in a temporary folder, with a folder beside it that nothing may reach. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer, Result } from "effect"
import { CallId, EDGE } from "#schema/Ids.ts"
import { GitAccess } from "#src/agent/git/GitAccess.ts"
import { ProcessRunner } from "#src/agent/process/ProcessRunner.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import { APART } from "./apartProgram.ts"
import { agentConfig, settingsOf } from "./testing/TestAgent.ts"
import type { ToolContext } from "#src/agent/tools/Tool.ts"
import { Pictures } from "#src/agent/workspace/Pictures.ts"
import { Workspace } from "#src/agent/workspace/Workspace.ts"

export const OUTSIDE_TEXT = "OUTSIDE"

export const temporaryWorkspace = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "choir-workspace-"))),
    (home) => Effect.sync(() => rmSync(home, { recursive: true, force: true }))
  ),
  (home) => {
    const [root, outside] = [join(home, "root"), join(home, "outside")]
    for (const folder of [root, outside]) mkdirSync(folder)
    writeFileSync(join(outside, "file"), OUTSIDE_TEXT)
    return { root, outside }
  }
)

/** What the built-in tools stand on, for as long as the test runs. */
export const toolServices = (root: string, config: AgentConfig = agentConfig()) =>
  Layer.build(
    Layer.mergeAll(
      Pictures.layer.pipe(Layer.provideMerge(Workspace.layer({ root }))),
      ProcessRunner.layer({ ownsPidNamespace: false, apart: APART }),
      AgentSettings.layer(settingsOf(1, config)),
      GitAccess.layerNone,
      SecretStore.layer
    )
  )

/** Ends of calls look through all processes for their id, as which each process of the tests therefore has its own; in choird an id holds its session's. */
export const callIdOf = (name: string): CallId => CallId.make(`${name}-${process.pid}`)

/** A lane that has seen these versions. */
export const laneThatSaw = (versions: Readonly<Record<string, string>> = {}): ToolContext => ({
  lane: EDGE,
  call_id: callIdOf("s-1-1-0"),
  seen: (path) => versions[path],
  network: true
})

/** How many turns of a walk go by between two looks at the racer. */
const TURNS = 50

/** What a program reads there that follows links. */
const naively = (path: string) => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return undefined
  }
}

/**
 * Reads, writes and lists `send` of a workspace until somebody swapped its parts so many times, each way went well a hundred times, one
 * was refused, and the outside would have been read by its name once (`naive`), so that the races were some. Whoever swaps has
 * `outside-only` beside `file` at the other end.
 */
export const walkUnderRaces = <E, R>(root: string, swaps: number, swapped: Effect.Effect<number, E, R>) =>
  Effect.gen(function* () {
    const workspace = yield* Workspace
    const counts = { read: 0, written: 0, refused: 0, leaked: 0, swaps: 0, naive: 0 }
    const isOver = () =>
      counts.swaps >= swaps && counts.read >= 100 && counts.written >= 100 && counts.refused > 0 && counts.naive > 0
    for (let turn = 0; !isOver(); turn++) {
      if (turn % TURNS === 0) counts.swaps = yield* swapped
      const read = yield* Effect.result(workspace.read("send/file"))
      if (Result.isFailure(read)) counts.refused++
      else if (Buffer.from(read.success.bytes).toString("utf8") === OUTSIDE_TEXT) counts.leaked++
      else counts.read++
      if (naively(join(root, "send/file")) === OUTSIDE_TEXT) counts.naive++
      const path = turn % 2 === 0 ? "send/file" : `send/new-${turn % 8}/file`
      const write = yield* Effect.result(workspace.update(path, () => Result.succeed(Buffer.from(`inside ${turn}`))))
      if (Result.isFailure(write)) counts.refused++
      else counts.written++
      const list = yield* Effect.result(workspace.list("send"))
      if (Result.isSuccess(list) && list.success.entries.includes("outside-only")) counts.leaked++
    }
    return counts
  }).pipe(Effect.provide(Workspace.layer({ root })))
