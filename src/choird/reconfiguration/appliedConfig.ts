/** What runs after an apply: the staged configuration, less what only a restart can change. Pure. */
import { Result, Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { STARTED_WITH } from "./reloadClasses.ts"
import { type AgentUse, resourcesOf, SECTIONS } from "./resourcesInUse.ts"

type Table = Readonly<Record<string, unknown>>

/** The entries of `running` that are wanted and that `target` lacks, then all of `target`. */
const keeping = (running: Table, target: Table, wanted: (name: string) => boolean): Table => ({
  ...Object.fromEntries(Object.entries(running).filter(([name]) => wanted(name) && !Object.hasOwn(target, name))),
  ...target
})

const decode = Schema.decodeUnknownResult(Config, { errors: "all", onExcessProperty: "error" })

/**
 * The configuration that can run beside the agents that run: what choird reads at its start stays, as do the agents that run and
 * the resources that they are bound to, where `target` has them no more. Fails with the problems of a mixture that is no valid
 * configuration, such as a folder that would have two names.
 */
export const appliedConfig = (
  running: Config,
  target: Config,
  uses: ReadonlyArray<AgentUse>
): Result.Result<Config, string> => {
  const users = new Set<string>(uses.map(({ agent_id }) => agent_id))
  const orphans = uses.flatMap(({ agent_id }) =>
    Object.hasOwn(target.agents, agent_id) ? [] : [running.agents[agent_id]?.defaults ?? {}]
  )
  const held = new Set([
    ...uses.flatMap(({ bindings }) => [...resourcesOf(running, bindings)]),
    ...orphans.flatMap((defaults) => [...resourcesOf(running, defaults)])
  ])
  const tables = SECTIONS.map((section) => [
    section,
    keeping(running[section], target[section], (name) => held.has(`${section}.${name}`))
  ])
  const fixed = STARTED_WITH.flatMap((key) => (running[key] === undefined ? [] : [[key, running[key]]]))
  const { embedding: _, ...rest } = target
  const mixed = {
    ...rest,
    ...Object.fromEntries(tables),
    ...Object.fromEntries(fixed),
    agents: keeping(running.agents, target.agents, (id) => users.has(id))
  }
  return Result.mapError(decode(mixed), ({ message }) => message)
}
