import { mkdirSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, layer } from "@effect/vitest"
import { Effect, Option } from "effect"
import { AgentId, ResourceName } from "#schema/Ids.ts"
import { Leases } from "#src/choird/agents/Leases.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { beginLife, database, LIVE, makeAgentHome, makeImage } from "../../support/choird.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { LAYER_MS_MAX } from "../../support/size.ts"

type Life = Effect.Success<ReturnType<typeof beginLife>>

const leasesOf = (life: Pick<Life, "within">, agent_id: AgentId) =>
  life.within(
    Effect.map(
      Effect.flatMap(Leases, (leases) => leases.all),
      (all) => all.filter((lease) => lease.agent_id === agent_id)
    )
  )

describe("what an agent needs before it starts", LIVE, () => {
  layer(database, { excludeTestServices: true, timeout: LAYER_MS_MAX })((it) => {
    it.effect("says what is missing, and leaves no session and no lease", () =>
      Effect.gen(function* () {
        const home = yield* makeAgentHome((id) => ({
          models: { small: { provider: "test", model: "s", endpoint: "http://127.0.0.1:1", secret: "key" } },
          agents: { [id]: { repo: { url: "/srv/a" }, defaults: { workspace: "main", llm: "small" } } }
        }))
        const life = yield* beginLife(home.home)
        const { agent_id } = home
        const refusal = (options: Parameters<typeof life.lifecycle.start>[1], id = agent_id) =>
          Effect.map(
            Effect.flip(life.lifecycle.start(id, options)),
            ({ hint, kind, reason }) => `${kind} ${reason} ${hint}`
          )
        assert.match(yield* refusal({}, AgentId.make("nobody")), /^UNKNOWN_AGENT .*known:/u)
        assert.match(yield* refusal({}), /^NOT_READY .* has no DM .*--dm desk or hall$/u)
        const dm = ResourceName.make("desk")
        const missing = ResourceName.make("missing")
        assert.match(
          yield* refusal({ dm, workspace: missing }),
          /^NOT_READY there is no workspace "missing" .*main, spare$/u
        )
        assert.match(yield* refusal({ dm }), /^NOT_READY .*"key".* choirctl secret set key/u)
        home.write("secrets.json", { key: "value" })
        const next = yield* beginLife(home.home)
        home.noImage()
        const image = yield* Effect.flip(next.lifecycle.start(agent_id, { dm }))
        assert.match(`${image.kind} ${image.hint}`, new RegExp(`^NOT_READY choirctl agent build ${agent_id}$`, "u"))
        assert.strictEqual((yield* Effect.flip(next.lifecycle.stop(agent_id))).kind, "NOT_RUNNING")
        assert.isTrue(
          Option.isNone(yield* next.within(Effect.flatMap(SessionStore, (sessions) => sessions.latest(agent_id))))
        )
        assert.deepStrictEqual(yield* leasesOf(next, agent_id), [])
      })
    )

    it.effect("refuses a workspace in whose place an agent of another workspace could put a link (R39)", () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        for (const name of ["outer/inner", "elsewhere"]) mkdirSync(join(folder, name), { recursive: true })
        symlinkSync(join(folder, "outer"), join(folder, "alias"))
        const lies = ["outer/inner", "alias/inner/", "outer/inner/../inner", "outer/inner/not/yet"]
        const home = yield* makeAgentHome(() => ({
          workspaces: Object.fromEntries([
            ["main", { path: join(folder, "elsewhere") }],
            ["outer", { path: join(folder, "outer") }],
            ...lies.map((path, index) => [`inner-${index}`, { path: `${folder}/${path}` }])
          ])
        }))
        const { agent_id } = home
        const life = yield* beginLife(home.home)
        const refused = (name: string) =>
          Effect.flip(life.lifecycle.start(agent_id, { workspace: ResourceName.make(name) }))
        for (const index of lies.keys()) {
          const { kind, reason } = yield* refused(`inner-${index}`)
          assert.deepStrictEqual(
            [kind, reason],
            [
              "NOT_READY",
              `the workspace "inner-${index}" is inside the workspace "outer", whose agent could put anything in its place`
            ]
          )
        }
        yield* life.lifecycle.start(agent_id, { workspace: ResourceName.make("outer") })
      })
    )

    it.effect(
      "refuses the folder that another agent works in, also where a link of another workspace leads to it",
      () =>
        Effect.gen(function* () {
          const folder = yield* temporaryFolder
          mkdirSync(join(folder, "real"))
          symlinkSync(join(folder, "real"), join(folder, "link"))
          const other = AgentId.make("works-there")
          const home = yield* makeAgentHome((_, { agents, dms }) => ({
            workspaces: { main: { path: join(folder, "real") }, linked: { path: join(folder, "link") } },
            dms: { ...(dms as object), own: { gateway: "terminal", user_id: "own" } },
            agents: {
              ...(agents as object),
              [other]: { repo: { url: "/srv/b" }, defaults: { workspace: "linked", llm: "small", dm: "own" } }
            }
          }))
          yield* makeImage(home.home, other)
          const { lifecycle } = yield* beginLife(home.home)
          yield* lifecycle.start(home.agent_id, {})
          const { kind, reason } = yield* Effect.flip(lifecycle.start(other, {}))
          assert.deepStrictEqual(
            [kind, reason],
            ["NOT_READY", `${home.agent_id} works in the folder ${join(folder, "link")}`]
          )
          yield* lifecycle.stop(home.agent_id)
          yield* lifecycle.start(other, {})
        })
    )

    it.effect("refuses a resource that another agent holds, by that agent's name", () =>
      Effect.gen(function* () {
        const home = yield* makeAgentHome((id, { agents }) => ({
          agents: { ...(agents as object), [`${id}-b`]: (agents as Record<string, unknown>)[id] }
        }))
        const { lifecycle, ...life } = yield* beginLife(home.home)
        const other = AgentId.make(`${home.agent_id}-b`)
        yield* makeImage(home.home, other)
        yield* lifecycle.start(home.agent_id, {})
        const held = yield* Effect.flip(lifecycle.start(other, { workspace: ResourceName.make("spare") }))
        assert.match(held.reason, new RegExp(`DM "desk" is leased by the agent "${home.agent_id}"`, "u"))
        assert.match(held.hint, /--dm/u)
        assert.deepStrictEqual(yield* leasesOf(life, other), [])
        yield* lifecycle.start(other, { workspace: ResourceName.make("spare"), dm: ResourceName.make("hall") })
      })
    )
  })
})
