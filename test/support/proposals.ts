/** A choird that takes proposals of a scripted agent: real git, a real database, and deaths where a test wants them. */
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Deferred, Effect, Layer, Logger, Option, Schedule, type Schema, Scope } from "effect"
import { CallId, EDGE } from "#schema/Ids.ts"
import type { GitIdentity } from "#schema/GitIdentity.ts"
import { ImageVersion } from "#schema/Image.ts"
import type { ProposalKind } from "#schema/ProposedChange.ts"
import type { Origin } from "#src/choird/images/ImageOrigin.ts"
import { Images } from "#src/choird/images/Images.ts"
import { BrowserWorker } from "#src/choird/workers/BrowserWorker.ts"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { refuse } from "#src/choird/reconfiguration/ConfigurationRefused.ts"
import { Reconfiguration } from "#src/choird/reconfiguration/Reconfiguration.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { Contexts } from "#src/choird/queues/Contexts.ts"
import { Drafts } from "#src/choird/queues/Drafts.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { AgentSteps } from "#src/choird/proposals/AgentSteps.ts"
import { AgentViews } from "#src/choird/agents/AgentViews.ts"
import { AgentChange } from "#src/choird/proposals/AgentChange.ts"
import { ConfigChange } from "#src/choird/proposals/ConfigChange.ts"
import { next } from "#src/choird/approvals/Execution.ts"
import { understandProposal } from "#src/choird/approvals/Proposal.ts"
import { Executions } from "#src/choird/proposals/Executions.ts"
import { layerProposals } from "#src/choird/proposals/layerProposals.ts"
import { Proposals } from "#src/choird/approvals/Proposals.ts"
import { badProposal, type Proposer } from "#src/choird/approvals/ProposalType.ts"
import { RepoChange } from "#src/choird/proposals/RepoChange.ts"
import { RepoSteps } from "#src/choird/proposals/RepoSteps.ts"
import { Git } from "#src/choird/repos/Git.ts"
import { GitWork } from "#src/choird/repos/GitWork.ts"
import { layerRepoAccess } from "#src/choird/repos/RepoAccess.ts"
import { Repos } from "#src/choird/repos/Repos.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { Signals } from "#src/choird/queues/Signals.ts"
import { Tokens } from "#src/choird/sessions/Tokens.ts"
import { loadFiles } from "#src/shared/config/configFiles.ts"
import { append } from "./confirmations.ts"
import { type Entry, makeGitRepo, temporaryFolder } from "./gitRepo.ts"
import { folders, GLOBAL_FILES } from "./images.ts"
import { BINDINGS, CONFIG, newAgent, SECRETS, Talk, userMsg } from "./stores.ts"
import { layerAppendRules } from "#src/choird/approvals/callApprovals.ts"

export const TOOL = {
  manifest: {
    llm: { name: "notes.count", description: "Counts the notes", input_schema: { type: "object" } },
    runtime: { exec_path: "notes.count", effect: "none" }
  },
  files: [{ path: "tools/notes.count", content: "#!/bin/sh\nwc -l notes\n", executable: true }],
  reason: "the user asked for it"
}

/** What the agent's repository is called for choird, and who the agent is there. */
export interface Remote {
  readonly url: string
  readonly secret?: string
  readonly identity?: Pick<GitIdentity, "remotes" | "known_hosts">
}

/** A home with one agent that has a repository of its own and a git identity. `remote` is given the repository's folder. */
const makeProposalHomeAt = Effect.fnUntraced(function* (
  remote: (path: string) => Effect.Effect<Remote, never, Scope.Scope>
) {
  const root = yield* temporaryFolder
  const home = join(root, "home")
  mkdirSync(home, { mode: 0o700 })
  const global = makeGitRepo(join(root, "global"))
  const agent = makeGitRepo(join(root, "agent"))
  global.commit(GLOBAL_FILES)
  const base = agent.commit({ "README.md": "an agent\n" })
  // Nobody works in it, so that it can be pushed to.
  agent.git(["config", "core.bare", "true"])
  const { identity, secret, url } = yield* remote(agent.path)
  const agent_id = newAgent()
  const config = {
    ...CONFIG,
    global_repo: { url: global.path, ref: "main" },
    git_identities: { robot: { name: "Robot", email: "robot@example.org", secret: "git-key", ...identity } },
    agents: {
      [agent_id]: {
        repo: { url, ref: "main" },
        defaults: { workspace: "main", llm: "small", git_identity: "robot" }
      }
    }
  }
  const write = (name: string, content: unknown) => {
    writeFileSync(join(home, name), JSON.stringify(content, undefined, 2), { mode: 0o600 })
    chmodSync(join(home, name), 0o600)
  }
  write("config.json", config)
  write("secrets.json", { ...SECRETS, "git-key": secret ?? "canary-of-git" })
  return {
    home,
    agent,
    agent_id,
    base,
    head: () => agent.git(["rev-parse", "main"]),
    config: (): Schema.Json => JSON.parse(readFileSync(join(home, "config.json"), "utf8")) as Schema.Json,
    configText: () => readFileSync(join(home, "config.json"), "utf8"),
    write
  }
})
export const makeProposalHome = makeProposalHomeAt((url) => Effect.succeed({ url }))
export type ProposalHome = Effect.Success<typeof makeProposalHome>

/** A branch of the agent's, ahead of `parent` by one commit. */
export const pushBranch = (
  { agent, base }: Pick<ProposalHome, "agent" | "base">,
  branch: string,
  files: Readonly<Record<string, string>>,
  parent = base
) => {
  const kept = agent
    .git(["ls-tree", "-r", parent])
    .split("\n")
    .map((line): Entry => {
      const [mode = "", , id = "", path = ""] = line.split(/[ \t]/u)
      return { path, mode, id }
    })
  const added = Object.entries(files).map(([path, content]): Entry => ({ path, content }))
  const tree = agent.commit([...kept, ...added], "scratch")
  const commit = agent.git(["commit-tree", `${tree}^{tree}`, "-p", parent, "-m", "a change"])
  agent.git(["update-ref", `refs/heads/${branch}`, commit])
  return commit
}

/** What the builder and the agent have done, over all lives of choird. */
export interface AgentWorld {
  builds: number
  /** The image that the agent runs with. */
  runs: string
  starts: number
  /** Makes the next builds fail, and nothing be loaded. */
  isBroken: boolean
  /** Happens once config.json is loaded, before it is applied. */
  loaded?: () => void
}

export const makeAgentWorld = (): AgentWorld => ({ builds: 0, runs: "0000000", starts: 0, isBroken: false })
export const IMAGE = ImageVersion.make("abc1234")

const fakeAgentSteps = (world: AgentWorld) =>
  AgentSteps.of({
    build: () =>
      Effect.suspend(() => {
        world.builds += 1
        return world.isBroken
          ? Effect.fail({ _tag: "ExecutionFailed", kind: "BUILD", reason: "a step failed\u202e" } as never)
          : Effect.succeed(IMAGE)
      }),
    afterChange: (_, job) => Effect.succeed(next("update", { ...job, bindings: BINDINGS })),
    update: (_, { image_version }) =>
      Effect.sync(() => {
        const wanted = image_version ?? "rebound"
        if (world.runs === wanted) return
        world.runs = wanted
        world.starts += 1
      })
  })

type Method = (...args: ReadonlyArray<never>) => Effect.Effect<unknown, unknown>

/** The same service, each of whose methods may be the last thing that happens, before it began or after it ended. */
const mortal = <S extends object>(service: S, tick: Effect.Effect<void>): S =>
  Object.fromEntries(
    Object.entries(service).map(([name, method]: [string, unknown]) => [
      name,
      typeof method === "function"
        ? (...args: ReadonlyArray<never>) =>
            Effect.andThen(
              tick,
              Effect.tap((method as Method)(...args), () => tick)
            )
        : method
    ])
  ) as S

/** config.json as it stands, taken over at once; in a broken world it is not even loaded. */
const reconfiguration = (world: AgentWorld) =>
  Layer.unwrap(
    Effect.map(ConfigStore, (store) =>
      Layer.mock(Reconfiguration, {
        load: () =>
          Effect.suspend(() => {
            if (world.isBroken) return Effect.fail(refuse("CONFIG", "a repository cannot be used", ""))
            world.loaded?.()
            return Effect.succeed({ changes: [], repos: [], warnings: [] })
          }),
        apply: () =>
          Effect.gen(function* () {
            const { config } = yield* Effect.orDie(loadFiles(store.home))
            const { version } = yield* store.current
            yield* store.replace({ version: version + 1, config })
            return { version: version + 1, previous: version, applied: [], pending: [] }
          })
      })
    )
  )

const imagesOf = (built: Origin | undefined) =>
  Layer.mock(Images, { origin: () => Effect.succeed(Option.fromUndefinedOr(built)) })

const layerLife = (home: string, world: AgentWorld, tick: Effect.Effect<void>) => {
  const gitWork = Layer.effect(
    GitWork,
    Effect.map(Effect.provide(GitWork, GitWork.layer), (work) => mortal(work, tick))
  )
  const configChange = Layer.effect(
    ConfigChange,
    Effect.map(Effect.provide(ConfigChange, ConfigChange.layer), (change) => mortal(change, tick))
  ).pipe(Layer.provide(reconfiguration(world)))
  const agentSteps = Layer.succeed(AgentSteps, mortal(fakeAgentSteps(world), tick))
  return Executions.layer.pipe(
    Layer.provideMerge(Layer.provide(Approvals.layer, Layer.mock(BrowserWorker, {}))),
    Layer.provideMerge(layerProposals),
    Layer.provide(Layer.mergeAll(AgentChange.layer, RepoChange.layer, configChange)),
    Layer.provide(AgentViews.layer),
    Layer.provide(Layer.provideMerge(RepoSteps.layer, agentSteps)),
    Layer.provide(Layer.merge(imagesOf(undefined), folders)),
    Layer.provideMerge(
      Layer.mergeAll(
        SessionStore.layer,
        EventStore.layer.pipe(Layer.provide(layerAppendRules)),
        Inbox.layer,
        Audit.layer
      )
    ),
    Layer.provideMerge(Layer.mergeAll(Tokens.layer, Signals.layer, Contexts.layer, Drafts.layer, Outbox.layer)),
    Layer.provideMerge(gitWork),
    Layer.provideMerge(Repos.layer(home)),
    Layer.provideMerge(Layer.merge(Git.layer, layerRepoAccess)),
    Layer.provideMerge(Layer.mergeAll(ConfigStore.layer({ home }), NodeServices.layer, Logger.layer([]))),
    Layer.orDie
  )
}

/** Previews proposals of the home's agent, without anything else of choird; `built` is what its image was made of. */
export const previewer = ({ home }: Pick<ProposalHome, "home">, built?: Origin) =>
  Layer.build(
    layerProposals.pipe(
      Layer.provide(Layer.mergeAll(AgentChange.layer, ConfigChange.layer, RepoChange.layer)),
      Layer.provide(AgentViews.layer),
      Layer.provide(RepoSteps.layer),
      Layer.provide(Layer.mergeAll(Layer.mock(AgentSteps, {}), Layer.mock(Reconfiguration, {}))),
      Layer.provide(Layer.merge(imagesOf(built), folders)),
      Layer.provide(Layer.mock(SessionStore, { get: () => Effect.succeedNone })),
      Layer.provide(GitWork.layer),
      Layer.provide(Repos.layer(home)),
      Layer.provide(Layer.merge(Git.layer, layerRepoAccess)),
      Layer.provide(Layer.mergeAll(ConfigStore.layer({ home }), NodeServices.layer))
    )
  ).pipe(
    Effect.flatMap((context) => Effect.provide(Proposals, context)),
    Effect.map(
      (proposals) =>
        ({ kind, payload, ...proposer }: Proposer & { readonly kind: ProposalKind; readonly payload: Schema.Json }) =>
          Effect.flatMap(
            Effect.mapError(Effect.fromResult(understandProposal(kind, payload)), badProposal),
            (proposal) => proposals.preview(proposer, proposal)
          )
    )
  )

/** A life of choird, which executes what is approved until its scope is closed. `dies_at` is the tick at which nothing happens any more. */
export const beginLife = Effect.fnUntraced(function* (
  { home }: ProposalHome,
  world: AgentWorld = makeAgentWorld(),
  dies_at = Number.POSITIVE_INFINITY
) {
  const scope = yield* Scope.fork(yield* Effect.scope)
  const dead = yield* Deferred.make<void>()
  let ticks = 0
  let isCounting = false
  const tick = Effect.suspend(() => {
    if (!isCounting) return Effect.void
    ticks += 1
    return ticks < dies_at ? Effect.void : Effect.andThen(Deferred.succeed(dead, undefined), Effect.never)
  })
  const services = yield* Layer.build(Layer.fresh(layerLife(home, world, tick))).pipe(Scope.provide(scope))
  const within = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provideContext(effect, services)
  const approvals = yield* within(Approvals)
  return {
    scope,
    within,
    dead: Deferred.await(dead),
    ticks: () => ticks,
    /** Begins to carry out, and to count. */
    execute: Effect.gen(function* () {
      isCounting = true
      const executions = yield* within(Executions)
      yield* Scope.provide(executions.run, scope)
    }),
    decide: Effect.fnUntraced(function* (approval_id: string, resolution: "approved" | "rejected") {
      const { hash } = yield* approvals.get(approval_id)
      return yield* approvals.decide({
        approval_id,
        resolution,
        hash8: hash.slice(0, 8),
        who: "operator",
        reason: null
      })
    }),
    get: approvals.get,
    ended: (approval_id: string) =>
      approvals.get(approval_id).pipe(
        Effect.filterOrFail(
          ({ status }) => status === "done" || status === "failed",
          ({ status, step }) => `${status} at ${step}`
        ),
        Effect.retry(Schedule.spaced("10 millis"))
      )
  }
})
export type ProposalLife = Effect.Success<ReturnType<typeof beginLife>>

let messages = 2_000_000

/** A new session of the agent; `call` makes it call choir.propose.<kind>, and `request` is what follows. */
export const makeProposer = Effect.fnUntraced(function* (
  { agent_id }: Pick<ProposalHome, "agent_id">,
  { within }: Pick<ProposalLife, "within">
) {
  const sessions = yield* within(SessionStore)
  const { session_id } = yield* sessions.create(agent_id, BINDINGS, "0000000")
  const talk = new Talk(session_id, agent_id)
  const call = Effect.fnUntraced(function* (kind: ProposalKind, input: Schema.Json) {
    messages += 1
    const call_id = CallId.make(`call-${messages}`)
    const tool = `choir.propose.${kind}`
    const from = talk.rev
    talk.commit(
      userMsg(messages),
      {
        event_type: "ModelOutput",
        lane: EDGE,
        payload: {
          call_id: CallId.make(`out-${messages}`),
          purpose: "turn",
          model: "small",
          tool_calls: [{ call_id, name: "choir-propose", input: { kind, proposal: input } }],
          finish_reason: "tool_calls",
          usage: { input_tokens: 1, output_tokens: 1 },
          latency_ms: 1
        }
      },
      {
        event_type: "ToolCallRequested",
        lane: EDGE,
        payload: { call_id, tool, input, effect: "none", locks: [] }
      },
      { event_type: "ToolCallCommitted", lane: EDGE, payload: { call_id, locks: [] } }
    )
    yield* within(append(talk, from))
    return call_id
  })
  const request = (kind: ProposalKind, call_id: CallId, payload: Schema.Json) =>
    within(
      Effect.flatMap(Approvals, (approvals) => approvals.request(talk.caller, { request_type: kind, call_id, payload }))
    )
  /** Ends the turn, so that the agent can propose something else. */
  const finish = Effect.fnUntraced(function* (call_id: CallId) {
    const from = talk.rev
    talk.commit(
      {
        event_type: "ToolResultCommitted",
        lane: EDGE,
        payload: { call_id, status: "success", summary: "submitted", duration_ms: 1 }
      },
      {
        event_type: "ModelOutput",
        lane: EDGE,
        payload: {
          call_id: CallId.make(`end-${messages}`),
          purpose: "turn",
          model: "small",
          text: "done",
          tool_calls: [],
          finish_reason: "stop",
          usage: { input_tokens: 1, output_tokens: 1 },
          latency_ms: 1
        }
      },
      {
        event_type: "AgentMessage",
        lane: EDGE,
        payload: { kind: "reply", text: "done", in_reply_to: String(messages) as never }
      }
    )
    yield* within(append(talk, from))
  })
  return {
    talk,
    session_id,
    call,
    request,
    /** Proposes, and answers the id or the refusal. */
    propose: Effect.fnUntraced(function* (kind: ProposalKind, input: Schema.Json) {
      const call_id = yield* call(kind, input)
      const asked = yield* Effect.result(request(kind, call_id, input))
      yield* finish(call_id)
      return yield* Effect.fromResult(asked)
    })
  }
})

interface Opening {
  readonly remote?: Parameters<typeof makeProposalHomeAt>[0]
  readonly world?: AgentWorld
}

/** A home, a life of choird that carries out nothing yet, and an agent that proposes. */
export const openProposals = Effect.fnUntraced(function* ({ remote, world }: Opening = {}) {
  const home = yield* remote === undefined ? makeProposalHome : makeProposalHomeAt(remote)
  const life = yield* beginLife(home, world)
  const proposer = yield* makeProposer(home, life)
  /** How a proposal ends that a person says yes to. */
  const carried = Effect.fnUntraced(function* (approval_id: string) {
    yield* life.decide(approval_id, "approved")
    const { outcome, status } = yield* life.ended(approval_id)
    return { outcome: outcome ?? "", status }
  })
  return { home, life, carried, ...proposer }
})
