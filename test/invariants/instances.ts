/** Invariant 11: an agent has one instance. choird refuses a second start, and an older epoch is fenced before the next one begins. */
import { tmpdir } from "node:os"
import { assert } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Logger, Option, Redacted, Result, Schema, Stream } from "effect"
import { Config } from "#schema/Config.ts"
import { AgentId, Rev, Sha256 } from "#schema/Ids.ts"
import { CommitId, ImageVersion } from "#schema/Image.ts"
import { Images } from "#src/choird/images/Images.ts"
import { Leases } from "#src/choird/agents/Leases.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { AgentSockets } from "#src/choird/listeners/AgentSockets.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { LogFiles } from "#src/choird/logs/LogFiles.ts"
import { CgroupName } from "#src/choird/runtime/Cgroups.ts"
import { type ContainerExit, ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { admit, prepare } from "#src/choird/sessions/decideAppend.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { Signals } from "#src/choird/queues/Signals.ts"
import { AgentNumbers } from "#src/choird/sessions/AgentNumbers.ts"
import { Tokens } from "#src/choird/sessions/Tokens.ts"
import { activeSession, CONFIG, DESK } from "../support/stores.ts"
import { makeMemoryControlPlane, SESSION } from "../support/testing/MemoryControlPlane.ts"
import { says } from "../support/testing/ScriptedModel.ts"
import { ofType, runAgent, ticking } from "../support/testing/TestAgent.ts"

const AGENT = AgentId.make("helper")
const STARTS = 5

/** Its workspace is a folder that is there. */
const config = Schema.decodeUnknownSync(Config)({ ...CONFIG, workspaces: { main: { path: tmpdir() } } })

const first = activeSession(AGENT, SESSION)

/** What is done to containers, in order; `crash` ends the one that runs. */
interface Host {
  readonly did: Array<string>
  crash: Effect.Effect<unknown>
  /** Says that the agent of this epoch is there. */
  hello(epoch: number): Effect.Effect<void>
}

/** choird's stores and its runtime in memory, around the real {@link Lifecycle}. */
const around = (host: Host) => {
  const note = (what: string) => Effect.sync(() => void host.did.push(what))
  let row = first
  const sessions = Layer.mock(SessionStore, {
    latest: () => Effect.succeedNone,
    get: () => Effect.succeedSome(row),
    newer: () => Effect.succeedNone,
    create: () => Effect.succeed(row),
    resume: () => Effect.sync(() => (row = { ...row, epoch: row.epoch + 1 })),
    recordContainer: () => Effect.void,
    end: () => Effect.void
  })
  const runtime = Layer.mock(ContainerRuntime, {
    type: "process",
    hasImage: () => Effect.succeed(true),
    start: ({ epoch }) =>
      Effect.gen(function* () {
        const exit = yield* Deferred.make<ContainerExit>()
        yield* note(`start ${epoch}`)
        host.crash = Deferred.succeed(exit, { code: 1, signal: null, reason: "exited" })
        // The agent says hello when it runs, a moment after it was started.
        yield* Effect.forkScoped(
          Effect.delay(
            Effect.suspend(() => host.hello(epoch)),
            "10 millis"
          )
        )
        return {
          id: { type: "process", boot_id: "b", processes: [], cgroup: CgroupName.make("choir-x-1"), workspace: "/w" },
          exit: Deferred.await(exit),
          condition: Effect.succeed("running" as const),
          kill: Effect.delay(note(`kill ${epoch}`), "100 millis"),
          output: Stream.empty
        }
      })
  })
  const image = { image_version: ImageVersion.make("abc1234"), path: "/i" }
  const commit = CommitId.make("0".repeat(40))
  const hash = Sha256.make("0".repeat(64))
  const hashes = { tool_manifest_hash: hash, skill_manifest_hash: hash }
  const version = { ...image, ...hashes, agent_id: AGENT, global_repo_commit: commit, agent_repo_commit: commit }
  return Layer.mergeAll(
    sessions,
    runtime,
    Layer.mock(ConfigStore, {
      home: "/h",
      current: Effect.succeed({ version: 1, config }),
      secrets: Effect.succeed({}),
      secretsOf: () => Effect.succeed(new Set())
    }),
    Layer.mock(Images, {
      current: () => Effect.succeed(image),
      verify: () => Effect.succeed(version),
      worked: () => Effect.void
    }),
    Layer.mock(AgentNumbers, { of: () => Effect.succeed(0) }),
    Layer.mock(Leases, { acquire: () => Effect.void, release: () => Effect.void, transfer: () => Effect.void }),
    Layer.mock(AgentSockets, { open: () => Effect.succeed({ dir: "/d", path: "/d/choird.sock" }) }),
    Layer.mock(LogFiles, { follow: () => Effect.undefined, logger: Logger.make(() => undefined) }),
    Layer.mock(Audit, { record: () => Effect.void }),
    Layer.mock(Inbox, { pending: () => Effect.succeed(0) }),
    Layer.mock(Outbox, { tell: () => Effect.void }),
    Layer.mock(Signals, { stop: () => Effect.void }),
    Layer.mock(Tokens, {
      bootstrap: (_, __, epoch) => Effect.as(note(`token ${epoch}`), Redacted.make("token")),
      revoke: () => Effect.void
    })
  )
}

const manyStarts = Effect.gen(function* () {
  const host: Host = { did: [], crash: Effect.void, hello: () => Effect.void }
  const programs = Effect.succeed({ node: "/n", program: "/p", rg: "/r" })
  const services = yield* Layer.build(Lifecycle.layer(programs).pipe(Layer.provide(around(host))))
  const lifecycle = yield* Effect.provideContext(Effect.service(Lifecycle), services)
  host.hello = (epoch) => lifecycle.hello(SESSION, epoch)
  const starts = yield* Effect.forkChild(
    Effect.forEach(Array.from({ length: STARTS }), () => Effect.result(lifecycle.start(AGENT, { dm: DESK })), {
      concurrency: "unbounded"
    })
  )
  yield* Effect.sleep("1 second")
  assert.deepStrictEqual(
    host.did.filter((what) => what.startsWith("start")),
    ["start 1"],
    "an agent that runs was started again"
  )
  const results = yield* Fiber.join(starts)
  const refusals = results.flatMap((result) => (Result.isFailure(result) ? [result.failure.kind] : []))
  assert.deepStrictEqual(refusals, Array(STARTS - 1).fill("ALREADY_RUNNING"))
  yield* host.crash
  yield* Effect.sleep("1 second")
  assert.deepStrictEqual(
    host.did,
    ["token 1", "start 1", "token 2", "kill 1", "start 2"],
    "an epoch began before the one before it was fenced and gone"
  )
}).pipe(Effect.scoped)

/** What choird's store says to a heartbeat of an epoch. */
const standing = (epoch: number) => {
  const hash = Sha256.make("0".repeat(64))
  const rev = Rev.make(0)
  const heartbeat = { epoch, base_rev: rev, new_rev: rev, hash_prev: hash, hash_new: hash, patches: [] }
  const sent = { ...heartbeat, config_version: 1, timestamp: "" } as Parameters<typeof prepare>[0]
  const session = { status: "active", epoch: 2, frozen_reason: null, last_rev: 0 } as const
  return admit(session, epoch, sent, prepare(sent))?.type
}

export const oneInstance = Effect.gen(function* () {
  yield* ticking
  yield* manyStarts
  assert.deepStrictEqual([1, 2].map(standing), ["fenced", undefined], "choird takes events of an epoch that is over")

  // An agent that is told so ends by itself, wherever it runs.
  const plane = yield* makeMemoryControlPlane
  const script = () => Effect.succeed(says("here"))
  const old = yield* Effect.forkScoped(runAgent({ plane, script }))
  yield* plane.say("one")
  yield* plane.until((events) => ofType(events, "AgentMessage").length === 1)
  yield* Effect.forkScoped(runAgent({ plane, script, epoch: 2 }))
  const ended = yield* Effect.timeoutOption(Fiber.await(old), "1 minute")
  assert.strictEqual(Option.getOrUndefined(ended)?._tag, "Failure", "an agent of an older epoch goes on")
})
