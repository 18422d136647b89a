/** A running agent between real processes: choird, the agent, a model and the bare loop. */
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import { makeInstallation, type InstallationOptions } from "../test/support/installation.ts"
import type { Run } from "./model.ts"
import { startModel, startRaw } from "./processes.ts"
import { fileText, paths } from "./work.ts"

/** More than any benchmark needs: what the agent may do is not what is measured. */
const ENOUGH = 1_000_000_000
const BUDGETS = {
  max_core_jobs: 32,
  total_session_tokens: ENOUGH,
  max_tool_calls_per_session: ENOUGH,
  per_job_max_steps: ENOUGH,
  per_job_max_tool_calls: ENOUGH
}

/** Starts them all; they end with the scope. */
export const startAgent = Effect.fnUntraced(function* (options: Partial<InstallationOptions>) {
  const model = yield* startModel
  const choir = yield* makeInstallation({ endpoint: model.url, ...options, config: { budgets: BUDGETS } })
  for (const path of paths) {
    mkdirSync(dirname(join(choir.workspace, path)), { recursive: true })
    writeFileSync(join(choir.workspace, path), fileText(0))
  }
  const choird = yield* choir.start
  yield* choir.build
  const { session_id } = yield* choir.api.agents.start({ params: choir.params, payload: {} })
  const order = yield* startRaw
  let messages = 0
  const say = Effect.fnUntraced(function* (task: string) {
    const name = `t${++messages}`
    const { inbox_id } = yield* choir.send(name, `${task}:${name}`)
    yield* choir.settled(inbox_id)
    return name
  })
  return {
    choir,
    choird,
    session_id,
    /** A turn of edge, of so many steps. */
    turn: Effect.fnUntraced(function* (tool: string, steps: number) {
      const task = `bench:${tool}:${steps}:0`
      return yield* model.run(`${task}:${yield* say(task)}`)
    }),
    /** Jobs at once, until the last of them has its last answer. */
    jobs: Effect.fnUntraced(function* (count: number, tool: string, steps: number, latency_ms: number) {
      const task = `bench:${tool}:${steps}:${latency_ms}`
      const name = yield* say(`jobs:${count}:${task}`)
      return yield* Effect.forEach(
        Array.from({ length: count }, (_, job) => `${task}:${name}-${job}`),
        model.run
      )
    }),
    /** The calls of a run in the bare loop, in so many lanes. */
    raw: Effect.fnUntraced(function* ({ at_ms, bodies, key }: Run, lanes: number) {
      yield* order({ url: model.url, workspace: choir.workspace, bodies, requests: at_ms.length, lanes })
      return yield* Effect.forEach(
        Array.from({ length: lanes }, (_, lane) => `${lane}:${key}`),
        model.run
      )
    })
  }
})

export type Started = Effect.Success<ReturnType<typeof startAgent>>
