/** `choirctl agent init`: an entry of config.json that choird accepts, and the repository it names. */
import { join } from "node:path"
import { Effect, FileSystem } from "effect"
import { Config } from "#schema/Config.ts"
import { type AgentId, ResourceName } from "#schema/Ids.ts"
import { dmList, type DmNames } from "#schema/ResourceBindings.ts"
import { type CommandFailed, configError, failed, usageError } from "#src/choirctl/terminal/failure.ts"
import { configPath } from "#src/choirctl/terminal/root.ts"
import { decodeFile } from "#src/shared/config/decode.ts"
import { editJsonAt, type JsonEdit } from "#src/shared/config/jsonEdits.ts"
import { withHomeFilesLock } from "#src/shared/files/homeFilesLock.ts"
import { createRepo } from "#src/shared/git/scaffold.ts"
import { briefFile } from "./dailyBrief.ts"
import { readConfigText, writePrivate } from "./homeFiles.ts"
import { AGENT_STARTER, isFree } from "./repositories.ts"

/** The resources that the operator named; the rest is chosen. */
export interface Choice {
  readonly workspace?: ResourceName
  readonly llm?: ResourceName
  readonly dm?: ResourceName
  /** `memory.cross_read` of config.json, where the operator said whether agents read each other's memory. */
  readonly cross_read?: "all" | "none"
  /** When its daily brief begins, such as `daily at 07:30`; without it nothing begins by itself. */
  readonly brief?: string
}

/** An agent's entry and what else config.json needs for it. */
export interface Plan {
  readonly workspace: ResourceName
  readonly llm: ResourceName
  readonly dms: ReadonlyArray<ResourceName>
  /** A workspace of its own, made because none was free. */
  readonly new_workspace: string | undefined
  /** The console gateway of a DM of its own, made because none was free. */
  readonly new_dm_gateway: string | undefined
  /** Whether config.json lacks that gateway too. */
  readonly new_gateway: boolean
}

export interface AgentInitialized {
  readonly agent_id: AgentId
  readonly repo: string
  readonly workspace: ResourceName
  readonly llm: ResourceName
  /** As config.json has it: one name, or a list whose first gets what answers nobody. */
  readonly dm: DmNames
  /** When its daily brief begins; null where it has none, or an interrupted call left its repository. */
  readonly daily_brief: string | null
  /** Whether a brief was asked for that was not written, since the repository was there before. */
  readonly brief_left_out: boolean
  /** The entries of config.json that are new, as dotted paths. */
  readonly added: ReadonlyArray<string>
}

/** Names for a console gateway, the first free one. */
const CONSOLE_NAMES = ["terminal", "console"]

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
  // One that only stands in for another is nobody's first choice.
  const fallbacks = new Set(Object.values(config.models).flatMap(({ fallback }) => fallback))
  const llm = only(names(config.models)) ?? only(names(config.models).filter((name) => !fallbacks.has(name)))
  if (llm !== undefined) return { llm }
  return Object.keys(config.models).length === 0
    ? configError("config.json defines no model", "add one under models, then run this again")
    : usageError("config.json defines several models", `name one with --llm: ${listed(config.models)}`)
}

/** Every DM that no other agent uses, those of a phone first; one at the console is made where none is free. */
const planDms = (config: Config, id: AgentId, choice: Choice) => {
  if (choice.dm !== undefined)
    return named("dm", config.dms, choice.dm) ?? { dms: [choice.dm], gateway: undefined, new_gateway: false }
  const taken = new Set(Object.values(config.agents).flatMap(({ defaults }) => dmList(defaults.dm)))
  const free = names(config.dms).filter((name) => !taken.has(name))
  const isConsole = (gateway: string | undefined) => config.gateways[gateway as ResourceName]?.type === "console"
  const atConsole = (name: ResourceName) => isConsole(config.dms[name]?.gateway)
  const dms = [...free.filter((name) => !atConsole(name)), ...free.filter(atConsole)]
  if (dms.length > 0) return { dms, gateway: undefined, new_gateway: false }
  const gateway = names(config.gateways).find(isConsole)
  const own = ownName(id, config.dms)
  if (own === undefined)
    return usageError(
      `no DM is free for ${id}, and one called ${id} exists`,
      `name it with --dm: ${listed(config.dms)}`
    )
  const fresh = CONSOLE_NAMES.find((name) => !Object.hasOwn(config.gateways, name)) ?? `${id}-console`
  return { dms: [own], gateway: gateway ?? ResourceName.make(fresh), new_gateway: gateway === undefined }
}

const repoOf = (home: string, id: AgentId) => join(home, "sources", "agents", id)

/**
 * The model of the first agent of a home, which a brief is offered for, and the home's time zone; undefined for further agents, for a model that cannot
 * write one, and where the agent finds a repository of its name, which keeps the brief that it has or has not.
 */
export const briefWriter = Effect.fnUntraced(function* (home: string, id: AgentId, choice: Choice) {
  const { text } = yield* readConfigText(home)
  const config = yield* decodeFile(Config)(configPath(home), text)
  const planned = planModel(config, choice)
  const model = planned instanceof Error ? undefined : config.models[planned.llm]
  if (model === undefined || model.provider === "offline" || Object.keys(config.agents).length > 0) return undefined
  return (yield* isFree(repoOf(home, id), "move it elsewhere")) ? { model, timezone: config.timezone } : undefined
})

/** Whether this is the first agent beside another one, and config.json does not say whether they read each other's memory. */
export const asksAboutMemory = Effect.fnUntraced(function* (home: string, id: AgentId) {
  const { text } = yield* readConfigText(home)
  const { agents } = yield* decodeFile(Config)(configPath(home), text)
  return Object.keys(agents).some((name) => name !== id) && !/"cross_read"\s*:/u.test(text)
})

/** Decides every name of the entry, or names the flag that is required. */
const planAgent = (config: Config, home: string, id: AgentId, choice: Choice): Plan | CommandFailed => {
  if (Object.hasOwn(config.agents, id))
    return failed("AGENT_EXISTS", `the agent ${id} is already in config.json`, "choose another id")
  const workspace = planWorkspace(config, home, id, choice)
  if (workspace instanceof Error) return workspace
  const model = planModel(config, choice)
  if (model instanceof Error) return model
  const talk = planDms(config, id, choice)
  if (talk instanceof Error) return talk
  return {
    workspace: workspace.workspace,
    llm: model.llm,
    dms: talk.dms,
    new_workspace: workspace.path,
    new_dm_gateway: talk.gateway,
    new_gateway: talk.new_gateway
  }
}

/** One name for one DM, as most agents have it. */
const dmEntry = ({ dms }: Pick<Plan, "dms">): DmNames => only(dms) ?? dms

/** The entries of a plan, each in its place of config.json. */
const agentEdits = (id: AgentId, repo: string, plan: Plan): ReadonlyArray<JsonEdit> => {
  const { llm, new_dm_gateway: gateway, new_gateway, new_workspace, workspace } = plan
  return [
    ...(new_workspace === undefined ? [] : [[["workspaces", workspace], { path: new_workspace }] as const]),
    ...(gateway === undefined
      ? []
      : [
          ...(new_gateway ? [[["gateways", gateway], { type: "console" }] as const] : []),
          ...plan.dms.map((name) => [["dms", name], { gateway, user_id: id, admin: true }] as const)
        ]),
    [["agents", id], { repo: { url: repo, ref: "main" }, defaults: { workspace, llm, dm: dmEntry(plan) } }]
  ]
}

const addAgent = Effect.fnUntraced(function* (home: string, id: AgentId, choice: Choice) {
  const fs = yield* FileSystem.FileSystem
  const path = configPath(home)
  const { text: before } = yield* readConfigText(home)
  const config = yield* decodeFile(Config)(path, before)
  const plan = planAgent(config, home, id, choice)
  if (plan instanceof Error) return yield* plan
  const repo = repoOf(home, id)
  const fresh = yield* isFree(repo, "move it elsewhere")
  const brief = fresh ? choice.brief : undefined
  if (fresh) yield* createRepo(repo, AGENT_STARTER, "worktree", brief === undefined ? {} : yield* briefFile(brief))
  if (plan.new_workspace !== undefined) yield* fs.makeDirectory(plan.new_workspace, { recursive: true, mode: 0o700 })
  const shared = choice.cross_read === undefined ? [] : [[["memory", "cross_read"], choice.cross_read] as const]
  const text = editJsonAt(before, [...agentEdits(id, repo, plan), ...shared])
  yield* decodeFile(Config)(path, text)
  yield* writePrivate(path, text)
  const { dms, llm, new_dm_gateway, new_gateway, new_workspace, workspace } = plan
  const added = [
    `agents.${id}`,
    ...(new_workspace === undefined ? [] : [`workspaces.${workspace}`]),
    ...(new_gateway ? [`gateways.${new_dm_gateway}`] : []),
    ...(new_dm_gateway === undefined ? [] : dms.map((name) => `dms.${name}`)),
    ...(choice.cross_read === undefined ? [] : ["memory.cross_read"])
  ]
  const dm = dmEntry(plan)
  const brief_left_out = !fresh && choice.brief !== undefined
  return {
    agent_id: id,
    repo,
    workspace,
    llm,
    dm,
    daily_brief: brief ?? null,
    brief_left_out,
    added
  } satisfies AgentInitialized
})

/** Adds the agent, and reuses a repository that an interrupted call left. */
export const initAgent = Effect.fn("initAgent")((home: string, id: AgentId, choice: Choice) =>
  withHomeFilesLock(home)(addAgent(home, id, choice))
)
