/** The installation of a siege: honest agents and hostile ones, each with a workspace, a person and a session of its own. */
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Stream } from "effect"
import { rolldown } from "rolldown"
import { AgentId, type SessionId } from "#schema/Ids.ts"
import { offlineModel } from "#tools/Programs.ts"
import { makeStore } from "../support/chaosConversation.ts"
import { makeGitRepo } from "../support/gitRepo.ts"
import { makeInstallation, ROOT } from "../support/installation.ts"
import { type Kind, SCRIPTS } from "./kinds.ts"
import { GO, KIND, PROGRAM } from "./places.ts"

export const HONEST = ["ada", "bea", "cyd"].map((name) => AgentId.make(name))

/** Processors that each agent may use, as an operator allows them who has more agents than processors. */
const CPUS = 0.25
const ENOUGH = 1_000_000_000
const PACKED_FILES = 9
const PACKED_BYTES = 19 * 1024 * 1024

/** What stands before the agent's own program: a workspace may hold another one that runs in its place. */
const FIRST = `#!/usr/bin/env node
import { existsSync as siegeHas } from "node:fs"
const siege = (process.argv.find((each) => each.startsWith("--workspace=")) ?? "").slice(12) + "/${PROGRAM}"
if (siegeHas(siege)) { await import(siege); await new Promise(() => undefined) }
`

/** Choir's programs, of which choir-agent gives way to a hostile one. */
const makePrograms = Effect.gen(function* () {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "choir-siege-"))),
    (made) => Effect.sync(() => rmSync(made, { recursive: true, force: true }))
  )
  const dist = join(folder, "dist")
  copyFileSync(join(ROOT, "package.json"), join(folder, "package.json"))
  cpSync(join(ROOT, "dist"), dist, { recursive: true })
  for (const name of ["node_modules", "docker"]) symlinkSync(join(ROOT, name), join(folder, name))
  const agent = join(dist, "choir-agent.js")
  writeFileSync(agent, FIRST + readFileSync(agent, "utf8").replace(/^#!.*\n/u, ""))
  return dist
})

/** The hostile program as one file. */
const bundled = Effect.promise(async () => {
  const build = await rolldown({
    input: join(import.meta.dirname, "client.ts"),
    platform: "node",
    treeshake: { moduleSideEffects: (id) => id.includes("/test/siege/") }
  })
  const { output } = await build.generate({ format: "esm", codeSplitting: false })
  return output[0].code
})

/** A repository whose branch is small to push and large to read; answers the commit. */
const pushPacked = (path: string, session_id: SessionId): string => {
  const repo = makeGitRepo(path)
  const id = repo.blob("a\n".repeat(PACKED_BYTES / 2))
  const lines = Array.from({ length: PACKED_FILES }, (_, at) => `100644 ${id}\tnotes/${at}.txt`)
  repo.git(["read-tree", "main"])
  repo.git(["update-index", "--index-info"], `${lines.join("\n")}\n`)
  const commit = repo.git(["commit-tree", repo.git(["write-tree"]), "-p", "main", "-m", "notes"])
  repo.git(["update-ref", `refs/heads/proposal/${session_id}/x`, commit])
  return commit
}

export interface HomeOptions {
  readonly runtime: "sandbox" | "process"
  readonly database: "embedded" | "server"
  readonly kinds: ReadonlyArray<Kind>
}

const configOf = (
  home: string,
  kinds: ReadonlyArray<Kind>,
  models: { readonly honest: string; readonly hostile: string }
) => {
  const hostile = kinds.map(({ id }) => id)
  const all = [...HONEST, ...hostile]
  const each = <A>(value: (id: AgentId) => A) => Object.fromEntries(all.map((id) => [id, value(id)]))
  const model = { provider: "test", model: "offline-model", temperature: 0 }
  return {
    workspaces: each((id) => ({ path: join(home, "workspaces", id) })),
    models: {
      honest: { ...model, endpoint: models.honest, secret: "honest-key" },
      hostile: { ...model, endpoint: models.hostile, secret: "hostile-key" }
    },
    dms: each((id) => ({ gateway: "terminal", user_id: id, admin: true })),
    git_identities: { robot: { name: "Robot", email: "robot@example.org", secret: "git-key" } },
    agents: each((id) => ({
      repo: { url: join(home, "sources", id === "branches" ? "branches" : "agent") },
      defaults: {
        workspace: id,
        llm: HONEST.includes(id) ? "honest" : "hostile",
        dm: id,
        ...(id === "branches" ? { git_identity: "robot" } : {})
      }
    })),
    telemetry: { prometheus: { listen: "127.0.0.1:19464" } },
    budgets: {
      total_session_tokens: ENOUGH,
      max_tool_calls_per_session: ENOUGH,
      per_job_max_steps: 90,
      message_max_steps: 1000,
      turn_max_steps: 1000
    }
  }
}

/** Starts choird and all agents; the hostile ones rest. */
export const openSiege = Effect.fnUntraced(function* ({ database, kinds, runtime }: HomeOptions) {
  const programs = yield* makePrograms
  const client = yield* bundled
  const models = { honest: yield* offlineModel(0), hostile: yield* offlineModel(0) }
  const store = yield* makeStore(database)
  const keys = { "honest-key": `CANARY${"ab".repeat(12)}`, "hostile-key": "hostile", "git-key": "x" }
  const choir = yield* makeInstallation({
    ...store.options,
    secrets: { ...store.options.secrets, ...keys },
    runtime,
    programs,
    endpoint: models.honest,
    config: ({ home }) => ({ ...configOf(home, kinds, models), runtime: { type: runtime, cpus: CPUS } })
  })
  const workspaceOf = (id: AgentId) => join(choir.home, "workspaces", id)
  for (const id of HONEST) mkdirSync(workspaceOf(id), { recursive: true })
  for (const { id, words } of kinds) {
    mkdirSync(workspaceOf(id), { recursive: true })
    if (words === undefined) {
      writeFileSync(join(workspaceOf(id), PROGRAM), client)
      writeFileSync(join(workspaceOf(id), KIND), id)
    } else for (const [name, script] of Object.entries(SCRIPTS)) writeFileSync(join(workspaceOf(id), name), script)
  }
  const branches = join(choir.home, "sources/branches")
  cpSync(join(choir.home, "sources/agent"), branches, { recursive: true })
  const choird = yield* choir.start
  const start = Effect.fnUntraced(function* (id: AgentId) {
    const params = { id }
    yield* Stream.runDrain(Stream.unwrap(choir.api.agents.build({ params, payload: {} })))
    yield* choir.api.agents.start({ params, payload: {} })
    const { session_id } = yield* choir.api.agents.status({ params })
    if (session_id === null) return yield* Effect.die(new Error(`${id} has no session`))
    return session_id
  })
  const sessions = new Map<AgentId, SessionId>()
  for (const id of [...HONEST, ...kinds.map((kind) => kind.id)]) sessions.set(id, yield* start(id))
  const session = (id: AgentId) => sessions.get(id) ?? ("" as SessionId)
  const proposer = kinds.find(({ id }) => id === "branches")
  const packed = proposer === undefined ? "" : pushPacked(branches, session(proposer.id))
  return {
    choir,
    choird,
    packed,
    workspaceOf,
    session,
    honestKey: keys["honest-key"],
    /** Lets the programs of these kinds attack, and the others rest. */
    let: (going: ReadonlyArray<Kind>) => {
      for (const kind of kinds) {
        const file = join(workspaceOf(kind.id), GO)
        if (going.includes(kind)) writeFileSync(file, "")
        else rmSync(file, { force: true })
      }
    }
  }
})
export type Siege = Effect.Success<ReturnType<typeof openSiege>>

/** What lies in the workspaces of hostile agents. */
export const hostileFiles = (siege: Siege, kinds: ReadonlyArray<Kind>): ReadonlyArray<string> =>
  kinds.flatMap(({ id }) => {
    const folder = siege.workspaceOf(id)
    const names = readdirSync(folder, { withFileTypes: true })
    return names.filter((entry) => entry.isFile() && entry.name !== PROGRAM).map(({ name }) => join(folder, name))
  })
