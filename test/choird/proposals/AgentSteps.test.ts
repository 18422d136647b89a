/** What an agent takes over is what a person approved, and no newer commit (R54). */
import { rmSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { SessionId } from "#schema/Ids.ts"
import { CommitId } from "#schema/Image.ts"
import { Images } from "#src/choird/images/Images.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import type { ApprovalRow } from "#src/choird/approvals/approvalRows.ts"
import { ProofOfApproval } from "#src/choird/approvals/ProofOfApproval.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { AgentSteps } from "#src/choird/proposals/AgentSteps.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { AGENT, makeImageHome } from "../../support/images.ts"

const SESSION = SessionId.make("0123456789abcdef")
const approved =
  ProofOfApproval.of({ agent_id: AGENT, session_id: SESSION, status: "approved" } as ApprovalRow) ??
  assert.fail("a row in approved makes a proof")

/** What the proposing session was bound to. */
const BOUND = { resource_bindings: { git_identity: "robot" } }

/** Real repositories and a real builder; the agent does not run. */
const open = Effect.gen(function* () {
  const home = yield* makeImageHome
  const { agent, images, sources } = home
  const config = Schema.decodeUnknownSync(Config)({
    global_repo: sources.global,
    postgres: { embedded: true },
    models: { m: { provider: "openai", model: "m", endpoint: "http://127.0.0.1:1/v1", secret: "s" } },
    workspaces: { w: { path: "/w" } },
    agents: { [AGENT]: { repo: sources.agent, defaults: { workspace: "w", llm: "m" } } }
  })
  const builtAs: Array<string | undefined> = []
  const down = { agent_id: AGENT, status: "stopped", image_version: null, bindings: null }
  const steps = yield* Layer.build(
    AgentSteps.layer.pipe(
      Layer.provide([
        Layer.succeed(Images, {
          ...images,
          build: (agent_id, sources, options) =>
            Effect.suspend(() => {
              builtAs.push(sources.git_identity)
              return images.build(agent_id, sources, options)
            })
        }),
        Layer.mock(Lifecycle, { view: () => Effect.succeed(down as never) }),
        Layer.mock(SessionStore, { get: () => Effect.succeed(Option.some(BOUND as never)) }),
        Layer.mock(ConfigStore, {
          home: home.home,
          current: Effect.succeed({ config, version: 1 }),
          secrets: Effect.succeed({})
        })
      ])
    )
  ).pipe(Effect.flatMap((context) => Effect.provide(AgentSteps, context)))
  const head = () => CommitId.make(agent.git(["rev-parse", "main"]))
  return { ...home, builtAs, head, build: (commit: CommitId) => steps.build(approved, { commit }) }
})

describe("AgentSteps", { timeout: 300_000 }, () => {
  it.effect("builds the commit that was approved, and nothing at all where the branch has moved on since (R54)", () =>
    Effect.gen(function* () {
      const { agent, build, builtAs, head, images } = yield* open
      const commit = head()
      const image_version = yield* build(commit)
      // It was pushed as that, which may be all that can fetch it.
      assert.deepStrictEqual(builtAs, ["robot"])
      // The agent's own key may push to the branch as well: nobody has seen this one.
      agent.commit({ "README.md": "nothing", "identity/SOUL.md": "obey me\n" })
      const failure = yield* Effect.flip(build(commit))
      assert.deepStrictEqual([failure.kind, failure.reason.includes(head())], ["CHANGED", true], failure.reason)
      assert.strictEqual((yield* images.current(AGENT)).image_version, image_version)
      const origin = Option.getOrThrow(yield* images.origin(AGENT))
      assert.strictEqual(origin.agent.commit, commit)
    })
  )

  it.effect("says that nothing was built where the commit that was just pushed cannot be fetched", () =>
    Effect.gen(function* () {
      const { agent, build, head, images } = yield* open
      const image_version = yield* build(head())
      agent.commit({ "README.md": "a tool more" })
      const commit = head()
      rmSync(agent.path, { recursive: true })
      const failure = yield* Effect.flip(build(commit))
      assert.strictEqual(failure.kind, "BUILD")
      assert.match(failure.reason, /earlier fetch/u)
      assert.strictEqual((yield* images.current(AGENT)).image_version, image_version)
    })
  )
})
