/** Which image an agent is started from when the newest one is lost or does not work. */
import { assert, describe, layer } from "@effect/vitest"
import { Effect, Exit, Option, Scope } from "effect"
import type { AgentId } from "#schema/Ids.ts"
import { ImageBuildFailed } from "#src/choird/runtime/ContainerRuntime.ts"
import { Images } from "#src/choird/images/Images.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { beginLife, database, LIVE, makeAgentHome, makeImage } from "../../support/choird.ts"
import { LAYER_MS_MAX } from "../../support/size.ts"

type Life = Effect.Success<ReturnType<typeof beginLife>>

const auditOf = (life: Pick<Life, "within">, agent_id: AgentId) =>
  life
    .within(Effect.flatMap(Audit, (audit) => audit.last({ count: 100, agent_id })))
    .pipe(Effect.map((rows) => rows.map(({ action, detail }) => ({ action, ...(detail as object) }))))

const sessionOf = (life: Pick<Life, "within">, agent_id: AgentId) =>
  life.within(Effect.flatMap(SessionStore, (sessions) => sessions.latest(agent_id))).pipe(Effect.map(Option.getOrThrow))

describe("the image of a start", LIVE, () => {
  layer(database, { excludeTestServices: true, timeout: LAYER_MS_MAX })((it) => {
    it.effect("is the last one that worked, when the agent does not come up from a new one", () =>
      Effect.gen(function* () {
        const { agent_id, home, script } = yield* makeAgentHome()
        const life = yield* beginLife(home)
        const { lifecycle } = life
        const first = yield* lifecycle.start(agent_id, {})
        const bad = yield* makeImage(home, agent_id, "bad")
        script(`exit ${bad}`)
        const after = yield* lifecycle.restart(agent_id)
        assert.deepInclude(after, {
          status: "running",
          session_id: first.session_id,
          image_version: first.image_version
        })
        assert.match(
          after.reason ?? "",
          new RegExp(
            `the image ${bad} did not start: it exited with code 3: words\\.json: \\[31m"bogus" cannot be locked`,
            "u"
          )
        )
        yield* life.told(agent_id, /new version did not start.*it exited with code 3/u)
        const [row] = yield* auditOf(life, agent_id)
        const seen = {
          action: "agent.image",
          refused: "START_FAILED",
          image_version: bad,
          back_to: first.image_version
        }
        assert.deepStrictEqual({ ...row, reason: undefined }, { ...seen, reason: undefined })
        yield* life.say(agent_id, "one")
        yield* life.told(agent_id, /^3: one$/u)
        // A next choird does not try the bad one first.
        yield* Scope.close(life.scope, Exit.void)
        const next = yield* beginLife(home)
        yield* next.lifecycle.recover
        const resumed = yield* next.views.first((view) => view.status === "running")
        assert.deepInclude(resumed, { image_version: first.image_version, reason: null, epoch: 4 })
      })
    )

    it.effect("stays when it worked before, whatever keeps the agent from coming up now", () =>
      Effect.gen(function* () {
        const { agent_id, home, script } = yield* makeAgentHome()
        const { lifecycle, within } = yield* beginLife(home)
        yield* lifecycle.start(agent_id, {})
        const good = yield* makeImage(home, agent_id, "good")
        assert.strictEqual((yield* lifecycle.restart(agent_id)).image_version, good)
        script("exit")
        const cause = /did not start: it exited with code 3: words\.json: \[31m"bogus" cannot be locked/u
        assert.match((yield* Effect.flip(lifecycle.restart(agent_id))).reason, cause)
        assert.match((yield* lifecycle.view(agent_id)).reason ?? "", /code 3: words\.json/u)
        const images = yield* within(Images)
        assert.strictEqual((yield* images.current(agent_id)).image_version, good)
        // Nothing to go back to: the only image never worked.
        const other = yield* makeAgentHome()
        other.script("exit")
        const fresh = yield* beginLife(other.home)
        assert.match(
          (yield* Effect.flip(fresh.lifecycle.start(other.agent_id, {}))).reason,
          /did not start: it exited/u
        )
      })
    )

    it.effect("is what a choird that died between stop and start of a restart begins with", () =>
      Effect.gen(function* () {
        const { agent_id, home, script } = yield* makeAgentHome()
        const life = yield* beginLife(home)
        const first = yield* life.lifecycle.start(agent_id, {})
        const wanted = yield* makeImage(home, agent_id, "new")
        script("mute")
        yield* Effect.forkChild(life.lifecycle.restart(agent_id))
        yield* life.views.first((view) => view.status === "starting" && view.image_version === wanted)
        assert.strictEqual((yield* sessionOf(life, agent_id)).status, "active")
        yield* Scope.close(life.scope, Exit.void)
        script("")
        const next = yield* beginLife(home)
        yield* next.lifecycle.recover
        const resumed = yield* next.views.first((view) => view.status === "running")
        assert.deepInclude(resumed, { session_id: first.session_id, image_version: wanted })
      })
    )

    it.effect("that the engine lost and that cannot be built again ends the run at once, with what to do", () =>
      Effect.gen(function* () {
        const { agent_id, home } = yield* makeAgentHome()
        let has = true
        const life = yield* beginLife(home, (runtime) => ({
          ...runtime,
          hasImage: () => Effect.sync(() => has),
          buildImage: ({ agent_id, image_version }) =>
            Effect.fail(new ImageBuildFailed({ agent_id, image_version, problem: "no space", fix: "make room" }))
        }))
        yield* life.lifecycle.start(agent_id, {})
        has = false
        yield* life.say(agent_id, "crash")
        const view = yield* life.views.first((view) => view.status === "crashed")
        assert.match(view.reason ?? "", /engine lost image .*Run choirctl agent build/u)
        yield* life.told(agent_id, /stopped working: the Docker engine lost image/u)
        const rows = yield* auditOf(life, agent_id)
        assert.deepStrictEqual(
          rows.map(({ action }) => action),
          ["agent.restart"]
        )
        // One crash, no loop: the run ended at the first look.
        assert.strictEqual((yield* sessionOf(life, agent_id)).epoch, 1)
        const refused = yield* Effect.flip(life.lifecycle.start(agent_id, {}))
        assert.match(`${refused.kind} ${refused.hint}`, /^NOT_READY choirctl agent build/u)
      })
    )
  })
})
