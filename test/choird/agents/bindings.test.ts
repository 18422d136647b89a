import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { AgentId, ResourceName } from "#schema/Ids.ts"
import type { RestartAgent, StartAgent } from "#schema/AgentsApi.ts"
import { boundDms, type RunBindings } from "#schema/ResourceBindings.ts"
import {
  bindingsAsBefore,
  bindingsOf,
  explicitOf,
  keptOf,
  restartBindings,
  unknownBinding,
  withDm
} from "#src/choird/agents/bindings.ts"
import { CONFIG } from "../../support/stores.ts"

const config = Schema.decodeUnknownSync(Config)({
  ...CONFIG,
  git_identities: { me: { name: "n", email: "e", secret: "git" } },
  agents: {
    helper: { repo: { url: "/srv/helper" }, defaults: { workspace: "main", llm: "small", git_identity: "me" } },
    both: { repo: { url: "/srv/both" }, defaults: { workspace: "main", llm: "small", dm: ["phone", "desk"] } },
    deep: { repo: { url: "/srv/deep" }, defaults: { workspace: "main", llm: "small", core_llm: "large", dm: "desk" } }
  }
})
const bind = (id: string, options: StartAgent) => {
  const agent_id = AgentId.make(id)
  const agent = config.agents[agent_id]
  assert.isDefined(agent)
  return bindingsOf(config, agent_id, agent, options)
}

const OTHER = ResourceName.make("other")
const problemOf = (result: ReturnType<typeof bind>) => Result.getOrThrow(Result.flip(result))

describe("bindingsOf", () => {
  it("takes the agent's defaults and the start's overrides, and core jobs use edge's model unless told otherwise (E14)", () => {
    assert.deepStrictEqual(
      Result.getOrThrow(bind("helper", { dm: ResourceName.make("phone"), llm: OTHER })) as object,
      {
        workspace: "main",
        llm: "other",
        core_llm: "other",
        dm: "phone",
        dms: ["phone"],
        git_identity: "me",
        explicit: ["llm", "dm"]
      }
    )
    const deep = {
      workspace: "main",
      llm: "other",
      core_llm: "large",
      dm: "desk",
      dms: ["desk"],
      explicit: ["llm"]
    }
    assert.deepStrictEqual(Result.getOrThrow(bind("deep", { llm: OTHER })) as object, deep)
  })

  it("takes core jobs' model from the start before the agent's own, and a restart keeps it", () => {
    const core_llm = ResourceName.make("other")
    for (const id of ["both", "deep"]) {
      const started = Result.getOrThrow(bind(id, { core_llm }))
      assert.deepInclude(started as object, { llm: "small", core_llm: "other", explicit: ["core_llm"] })
      const agent = config.agents[AgentId.make(id)]
      assert.isDefined(agent)
      const before = { bindings: started, defaults: agent.defaults }
      const again = restartBindings(config, AgentId.make(id), agent, before, {})
      assert.deepStrictEqual(Result.getOrThrow(again), started)
      assert.deepStrictEqual<unknown>(keptOf(started, agent), [
        { binding: "core_llm", name: "other", default: id === "deep" ? "large" : "small" }
      ])
    }
    assert.include(problemOf(bind("both", { core_llm: ResourceName.make("gone") })).reason, '"gone"')
    // A run of an earlier version cannot have named it, whatever it is bound to.
    const { explicit: _, ...old } = Result.getOrThrow(bind("deep", { core_llm }))
    assert.deepStrictEqual(explicitOf(old, config.agents[AgentId.make("deep")]!.defaults), [])
  })

  it("asks for a DM when there is none by default, and names those that there are", () => {
    assert.match(problemOf(bind("helper", {})).hint, /--dm desk or phone$/u)
  })

  it("binds every DM of a list, of the defaults or of the start, and the first is the main one", () => {
    const [phone, desk] = [ResourceName.make("phone"), ResourceName.make("desk")]
    const dmsOf = (id: string, options: StartAgent) => {
      const { dm, dms } = Result.getOrThrow(bind(id, options))
      return [dm, dms]
    }
    assert.deepStrictEqual<unknown>(dmsOf("both", {}), ["phone", ["phone", "desk"]])
    assert.deepStrictEqual<unknown>(dmsOf("both", { dm: desk }), ["desk", ["desk"]])
    assert.deepStrictEqual<unknown>(dmsOf("deep", { dm: [desk, phone] }), ["desk", ["desk", "phone"]])
    assert.include(problemOf(bind("both", { dm: [phone, ResourceName.make("gone")] })).reason, 'no DM "gone"')
  })

  it("reads the DM of a session that was stored with one alone", () => {
    const { dms: _, ...old } = Result.getOrThrow(bind("deep", {}))
    assert.deepStrictEqual<unknown>(boundDms(old), ["desk"])
    assert.isUndefined(unknownBinding(config, old))
    assert.include(unknownBinding(config, { ...old, dm: ResourceName.make("gone") })?.reason, 'no DM "gone"')
  })

  it("refuses names that config.json does not hold, also inherited ones and those of an older configuration", () => {
    for (const [key, name] of Object.entries({ dm: "constructor", workspace: "no", llm: "no", email: "no" })) {
      assert.include(problemOf(bind("deep", { [key]: ResourceName.make(name) })).reason, `"${name}"`)
    }
    const old = Result.getOrThrow(bind("deep", {}))
    assert.isUndefined(unknownBinding(config, old))
    assert.match(
      unknownBinding(config, { ...old, notion: ResourceName.make("wiki") })?.hint ?? "",
      /notion_integrations/u
    )
  })
})

describe("restartBindings", () => {
  const restart = (
    id: string,
    before: RunBindings,
    started: Config["agents"][AgentId]["defaults"],
    options: RestartAgent = {}
  ) => {
    const agent_id = AgentId.make(id)
    const agent = config.agents[agent_id]
    assert.isDefined(agent)
    return Result.getOrThrow(restartBindings(config, agent_id, agent, { bindings: before, defaults: started }, options))
  }
  const defaultsOf = (id: string) => {
    const agent = config.agents[AgentId.make(id)]
    assert.isDefined(agent)
    return agent.defaults
  }

  it("takes a name and a list of one for the same DM, and the order of several for a difference", () => {
    const [phone, desk] = [ResourceName.make("phone"), ResourceName.make("desk")]
    const { dms: _, explicit: __, ...alone } = Result.getOrThrow(bind("deep", {}))
    for (const dm of [desk, [desk]]) {
      const next = restart("both", alone, { ...defaultsOf("deep"), dm })
      assert.deepStrictEqual<unknown>([next.dms, next.explicit], [["phone", "desk"], []])
    }
    const { explicit: ___, ...several } = Result.getOrThrow(bind("both", { dm: [desk, phone] }))
    assert.deepStrictEqual<unknown>(restart("both", several, defaultsOf("both")).explicit, ["dm"])
  })

  it("keeps what the start named, lets the restart name another, and lists what differs from the defaults", () => {
    const started = Result.getOrThrow(bind("both", { llm: OTHER, dm: [ResourceName.make("desk")] }))
    const defaults = defaultsOf("both")
    const kept = restart("both", started, defaults)
    assert.deepStrictEqual(kept, started)
    const agent = config.agents[AgentId.make("both")]
    assert.isDefined(agent)
    assert.deepStrictEqual(keptOf(kept, agent), [
      { binding: "llm", name: "other", default: "small" },
      { binding: "dm", name: "desk", default: "phone, desk" }
    ])
    const named = restart("both", started, defaults, { dm: [ResourceName.make("phone"), ResourceName.make("desk")] })
    assert.deepStrictEqual(
      keptOf(named, agent).map(({ binding }) => binding),
      ["llm"]
    )
  })
})

describe("bindingsAsBefore", () => {
  const [phone, desk] = [ResourceName.make("phone"), ResourceName.make("desk")]
  const again = (id: string, before: RunBindings, rebound?: ReadonlySet<string>) => {
    const agent_id = AgentId.make(id)
    const agent = config.agents[agent_id]
    assert.isDefined(agent)
    return Result.getOrThrow(bindingsAsBefore(config, agent_id, agent, before, rebound))
  }

  it("gives a run all its bindings and every DM again, and takes nothing for a flag that was a default", () => {
    const started = Result.getOrThrow(bind("both", { llm: OTHER, core_llm: OTHER, dm: [desk, phone] }))
    assert.deepStrictEqual(again("both", started), started)
    const usual = Result.getOrThrow(bind("both", {}))
    assert.deepStrictEqual(again("both", usual), usual)
    // A row of an earlier version does not say what its start named.
    const { explicit: _, ...old } = started
    assert.deepStrictEqual<unknown>(again("both", old), { ...started, core_llm: "other", explicit: ["llm", "dm"] })
  })

  it("takes those that were changed since from the defaults, which no restart then keeps", () => {
    const started = Result.getOrThrow(bind("both", { llm: OTHER, dm: [desk, phone] }))
    assert.deepStrictEqual<unknown>(again("both", started, new Set(["llm"])), {
      ...started,
      llm: "small",
      core_llm: "small",
      explicit: ["dm"]
    })
  })

  it("binds one more DM beside those that a start named, and leaves a run on its defaults to them", () => {
    const named = Result.getOrThrow(bind("both", { dm: [desk] }))
    assert.deepStrictEqual<unknown>(withDm(named, phone), { dm: ["desk", "phone"] })
    assert.deepStrictEqual<unknown>(withDm(named, desk), { dm: ["desk"] })
    assert.deepStrictEqual<unknown>(withDm(Result.getOrThrow(bind("both", {})), phone), {})
  })
})

describe("a name that config.json does not have", () => {
  it("is refused with those that it has, or with the only one", () => {
    const started = Result.getOrThrow(bind("both", {}))
    const hint = (one: Config) => unknownBinding(one, { ...started, llm: ResourceName.make("huge") })?.hint
    assert.strictEqual(hint(config), "choose one of small, large, other")
    const { small } = config.models as Readonly<Record<string, Config["models"][ResourceName]>>
    assert.strictEqual(hint({ ...config, models: { small } as never }), "the only one is small")
  })
})
