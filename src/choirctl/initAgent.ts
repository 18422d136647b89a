/** `choirctl agent init` (spec 17.8): an entry of config.json that choird accepts, and the repository it names. */
import { join } from "node:path"
import { Effect, FileSystem, Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { type AgentId, ResourceName } from "#schema/Ids.ts"
import { decodeFile } from "#src/shared/decode.ts"
import { aloneWithFiles } from "#src/shared/homeFilesLock.ts"
import { createRepo } from "#src/shared/scaffold.ts"
import { type CommandFailed, configError, failed, usageError } from "./failure.ts"
import { fileText, readConfigText, writePrivate } from "./homeFiles.ts"
import { isFree } from "./repoFolder.ts"
import { configPath } from "./root.ts"
import { AGENT_STARTER } from "./starters.ts"

/** What the operator named; the rest is chosen. */
export interface Choice {
  readonly workspace?: ResourceName
  readonly llm?: ResourceName
  readonly dm?: ResourceName
}

/** An agent's entry and what else config.json needs for it. */
export interface Plan {
  readonly workspace: ResourceName
  readonly llm: ResourceName
  readonly dm: ResourceName | undefined
  /** A workspace of its own, made because none was free. */
  readonly new_workspace: string | undefined
  /** The console gateway of a DM of its own, made because none was free. */
  readonly new_dm_gateway: string | undefined
  readonly warnings: ReadonlyArray<string>
}

export interface AgentInitialized {
  readonly agent_id: AgentId
  readonly repo: string
  readonly workspace: ResourceName
  readonly llm: ResourceName
  readonly dm: ResourceName | null
  readonly warnings: ReadonlyArray<string>
  /** The entries of config.json that are new, as dotted paths. */
  readonly added: ReadonlyArray<string>
}

type Table = Readonly<Record<string, unknown>>

const names = (table: Table) => Object.keys(table).map((name) => ResourceName.make(name))

const listed = (table: Table) => Object.keys(table).join(", ") || "none is defined"

/** The named entry, refused when its table lacks it. */
const named = (flag: string, table: Table, name: ResourceName) =>
  Object.hasOwn(table, name)
    ? undefined
    : usageError(`--${flag} ${name} is not in config.json`, `known there: ${listed(table)}`)

const only = <A>(values: ReadonlyArray<A>): A | undefined => (values.length === 1 ? values[0] : undefined)

const ownName = (id: AgentId, table: Table): ResourceName | undefined =>
  Object.hasOwn(table, id) ? undefined : ResourceName.make(id)

const planWorkspace = (config: Config, home: string, id: AgentId, choice: Choice) => {
  if (choice.workspace !== undefined)
    return named("workspace", config.workspaces, choice.workspace) ?? { workspace: choice.workspace, path: undefined }
  const taken = new Set(Object.values(config.agents).map(({ defaults }) => defaults.workspace))
  const free = only(names(config.workspaces).filter((name) => !taken.has(name)))
  if (free !== undefined) return { workspace: free, path: undefined }
  const own = ownName(id, config.workspaces)
  return own === undefined
    ? usageError(`no single workspace is free for ${id}`, `name one with --workspace: ${listed(config.workspaces)}`)
    : { workspace: own, path: join(home, "workspaces", id) }
}

const planModel = (config: Config, choice: Choice) => {
  if (choice.llm !== undefined) return named("llm", config.models, choice.llm) ?? { llm: choice.llm }
  const llm = only(names(config.models))
  if (llm !== undefined) return { llm }
  return Object.keys(config.models).length === 0
    ? configError("config.json defines no model", "add one under models, then run this again")
    : usageError("config.json defines several models", `name one with --llm: ${listed(config.models)}`)
}

const planDm = (config: Config, id: AgentId, choice: Choice) => {
  const none = { dm: undefined, gateway: undefined, warnings: [] as ReadonlyArray<string> }
  if (choice.dm !== undefined) return named("dm", config.dms, choice.dm) ?? { ...none, dm: choice.dm }
  const taken = new Set(Object.values(config.agents).map(({ defaults }) => defaults.dm))
  const free = names(config.dms).filter((name) => !taken.has(name))
  const dm = only(free)
  if (dm !== undefined) return { ...none, dm }
  const console = only(
    Object.entries(config.gateways).flatMap(([name, { type }]) => (type === "console" ? [name] : []))
  )
  const own = ownName(id, config.dms)
  if (free.length === 0 && console !== undefined && own !== undefined) return { ...none, dm: own, gateway: console }
  const known = free.length === 0 ? "none is free" : free.join(", ")
  return {
    ...none,
    warnings: [`the agent has no DM: name one with --dm at each start, or in config.json (free: ${known})`]
  }
}

/** Decides every name of the entry, or which flag has to say it. */
const planAgent = (config: Config, home: string, id: AgentId, choice: Choice): Plan | CommandFailed => {
  if (Object.hasOwn(config.agents, id))
    return failed("AGENT_EXISTS", `the agent ${id} is in config.json already`, "choose another id")
  const workspace = planWorkspace(config, home, id, choice)
  if (workspace instanceof Error) return workspace
  const model = planModel(config, choice)
  if (model instanceof Error) return model
  const dm = planDm(config, id, choice)
  if (dm instanceof Error) return dm
  return {
    workspace: workspace.workspace,
    llm: model.llm,
    dm: dm.dm,
    new_workspace: workspace.path,
    new_dm_gateway: dm.gateway,
    warnings: dm.warnings
  }
}

const Section = Schema.Record(Schema.String, Schema.MutableJson)
const sectionOf = (value: unknown) => (Schema.is(Section)(value) ? value : {})

/** config.json with the entry, every other key as it was. */
const withAgent = (
  config: Readonly<Record<string, Schema.MutableJson>>,
  id: AgentId,
  repo: string,
  plan: Plan
): Readonly<Record<string, Schema.MutableJson>> => ({
  ...config,
  ...(plan.new_workspace === undefined
    ? {}
    : { workspaces: { ...sectionOf(config["workspaces"]), [plan.workspace]: { path: plan.new_workspace } } }),
  ...(plan.new_dm_gateway === undefined || plan.dm === undefined
    ? {}
    : {
        dms: { ...sectionOf(config["dms"]), [plan.dm]: { gateway: plan.new_dm_gateway, user_id: id, admin: true } }
      }),
  agents: {
    ...sectionOf(config["agents"]),
    [id]: {
      repo: { url: repo, ref: "main" },
      defaults: { workspace: plan.workspace, llm: plan.llm, ...(plan.dm === undefined ? {} : { dm: plan.dm }) }
    }
  }
})

const addAgent = Effect.fnUntraced(function* (home: string, id: AgentId, choice: Choice) {
  const fs = yield* FileSystem.FileSystem
  const path = configPath(home)
  const written = yield* readConfigText(home)
  const config = yield* decodeFile(Config)(path, JSON.stringify(written))
  const plan = planAgent(config, home, id, choice)
  if (plan instanceof Error) return yield* plan
  const repo = join(home, "sources", "agents", id)
  if (yield* isFree(repo, "move it elsewhere")) yield* createRepo(repo, AGENT_STARTER)
  if (plan.new_workspace !== undefined) yield* fs.makeDirectory(plan.new_workspace, { recursive: true, mode: 0o700 })
  const text = fileText(withAgent(written, id, repo, plan))
  yield* decodeFile(Config)(path, text)
  yield* writePrivate(path, text)
  const { dm, llm, new_dm_gateway, new_workspace, warnings, workspace } = plan
  const added = [
    `agents.${id}`,
    ...(new_workspace === undefined ? [] : [`workspaces.${workspace}`]),
    ...(new_dm_gateway === undefined || dm === undefined ? [] : [`dms.${dm}`])
  ]
  return { agent_id: id, repo, workspace, llm, dm: dm ?? null, warnings, added } satisfies AgentInitialized
})

/** Adds the agent. A repository that an earlier, interrupted call left is used as it is. */
export const initAgent = Effect.fn("initAgent")((home: string, id: AgentId, choice: Choice) =>
  aloneWithFiles(home)(addAgent(home, id, choice))
)
