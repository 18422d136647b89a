import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { AgentId } from "#schema/Ids.ts"
import { ImageVersion } from "#schema/Image.ts"
import type { AgentStatus } from "#schema/AgentSummary.ts"
import { type BuildOptions, ImageInUse, Images, type ImageSources } from "#src/choird/images/Images.ts"
import { AgentRefused } from "#src/choird/agents/AgentRefused.ts"
import type { AgentView } from "#src/choird/agents/AgentViews.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { Updates } from "#src/choird/agents/Updates.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { agentView } from "../../support/agentView.ts"

const OLD = ImageVersion.make("0000001")
const NEW = ImageVersion.make("0000002")

interface Agent {
  readonly status: AgentStatus
  readonly image: ImageVersion | null
  /** The newest image before the build; the build makes NEW where it differs. */
  readonly newest: ImageVersion
  readonly git_identity?: string
}

const view = (agent_id: AgentId, { git_identity, image, status }: Agent): AgentView =>
  agentView(agent_id, {
    status,
    bindings: git_identity === undefined ? null : ({ git_identity } as never),
    image_version: image
  })

/** Agents whose builds and restarts are noted; a build of `broken` fails. */
const world = (agents: Readonly<Record<string, Agent>>, restart: Effect.Effect<void> = Effect.void) => {
  const known = new Map(Object.entries(agents))
  const done: Array<string> = []
  const lookUp = (agent_id: AgentId) => {
    const agent = known.get(agent_id)
    return agent === undefined
      ? Effect.fail(new AgentRefused({ kind: "UNKNOWN_AGENT", agent_id, reason: "none", hint: "" }))
      : Effect.succeed(view(agent_id, agent))
  }
  const repo = { url: "/r", ref: "main" }
  const entry = { repo, defaults: { workspace: "w", llm: "m" } }
  const config = Schema.decodeUnknownSync(Config)({
    global_repo: repo,
    postgres: { embedded: true },
    models: { m: { provider: "openai", model: "m", endpoint: "http://127.0.0.1:1/v1", secret: "s" } },
    workspaces: { w: { path: "/w" } },
    agents: Object.fromEntries(Object.keys(agents).map((id) => [id, entry]))
  })
  const images = Layer.mock(Images, {
    build: (agent_id: AgentId, { git_identity }: ImageSources, { in_use = [], progress }: BuildOptions = {}) =>
      Effect.gen(function* () {
        yield* progress?.("check") ?? Effect.void
        done.push(`build ${agent_id} ${in_use.join()}${git_identity ?? ""}`)
        if (agent_id === "broken") return yield* new ImageInUse({ agent_id, image_version: OLD })
        const built = known.get(agent_id)?.newest !== NEW
        return { image_version: NEW, path: "/", built, warnings: [] }
      })
  })
  const lifecycle = Layer.mock(Lifecycle, {
    view: lookUp,
    restart: (agent_id: AgentId) =>
      Effect.gen(function* () {
        done.push(`stop ${agent_id}`)
        yield* restart
        done.push(`start ${agent_id}`)
        return view(agent_id, { status: "running", image: NEW, newest: NEW })
      })
  })
  const store = Layer.mock(ConfigStore, {
    home: "/",
    current: Effect.succeed({ config, version: 1 }),
    secrets: Effect.succeed({})
  })
  const services = Updates.layer.pipe(Layer.provide([images, lifecycle, store]))
  return { done, services }
}

const quiet = () => Effect.void

describe("Updates", () => {
  it.effect("updates all agents one after the other, each with its own result", () => {
    const { done, services } = world({
      runs: { status: "running", image: OLD, newest: OLD },
      broken: { status: "running", image: OLD, newest: OLD },
      stands: { status: "stopped", image: OLD, newest: OLD },
      behind: { status: "running", image: OLD, newest: NEW },
      current: { status: "running", image: NEW, newest: NEW },
      bound: { status: "running", image: NEW, newest: NEW, git_identity: " as robot" },
      idle: { status: "stopped", image: null, newest: NEW }
    })
    return Effect.gen(function* () {
      const updates = yield* Updates
      const lines: Array<string> = []
      const rows = yield* updates.all((line) => Effect.sync(() => void lines.push(line)))
      assert.deepStrictEqual(
        rows.map(({ agent_id, error, outcome }) => [agent_id, outcome, error?._tag]),
        [
          ["runs", "redeployed", undefined],
          ["broken", "failed", "ImageInUse"],
          ["stands", "built", undefined],
          ["behind", "redeployed", undefined],
          ["current", "skipped", undefined],
          ["bound", "skipped", undefined],
          ["idle", "skipped", undefined]
        ]
      )
      assert.deepStrictEqual(done, [
        `build runs ${OLD}`,
        "stop runs",
        "start runs",
        `build broken ${OLD}`,
        "build stands ",
        `build behind ${OLD}`,
        "stop behind",
        "start behind",
        `build current ${NEW}`,
        `build bound ${NEW} as robot`,
        "build idle "
      ])
      assert.deepStrictEqual(lines.slice(0, 3), ["runs: check", `runs: restart on ${NEW}`, "broken: check"])
    }).pipe(Effect.provide(services))
  })

  it.effect("starts an agent again that it stopped, also when nobody waits any more", () => {
    const asked = Deferred.makeUnsafe<void>()
    const go = Deferred.makeUnsafe<void>()
    const pause = Effect.andThen(Deferred.succeed(asked, undefined), Deferred.await(go))
    const { done, services } = world({ runs: { status: "running", image: OLD, newest: OLD } }, pause)
    return Effect.gen(function* () {
      const updates = yield* Updates
      const fiber = yield* Effect.forkChild(updates.one(AgentId.make("runs"), quiet))
      yield* Deferred.await(asked)
      const ended = yield* Effect.forkChild(Fiber.interrupt(fiber))
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(ended)
      assert.deepStrictEqual(done, [`build runs ${OLD}`, "stop runs", "start runs"])
    }).pipe(Effect.provide(services))
  })
})
