import { chmodSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { CallId, EDGE, LaneId } from "#schema/Ids.ts"
import { AgentSettings } from "#src/agent/AgentSettings.ts"
import { Arbiter } from "#src/agent/Arbiter.ts"
import { EventLog } from "#src/agent/EventLog.ts"
import { ProcessRunner } from "#src/agent/ProcessRunner.ts"
import { Replication } from "#src/agent/Replication.ts"
import { ToolRegistry } from "#src/agent/ToolRegistry.ts"
import { isControl } from "#src/agent/tools/ControlTool.ts"
import { Workspace } from "#src/agent/Workspace.ts"
import { MANIFEST_BYTES_MAX } from "#src/shared/limits.ts"
import { makePlane, SESSION, settingsOf } from "../support/agent.ts"
import { temporaryWorkspace } from "../support/workspace.ts"

const CORE = LaneId.make("core:a")

const manifest = (name: string, runtime: object = {}, more: object = {}) =>
  JSON.stringify({
    llm: { name, description: "d", input_schema: { type: "object" } },
    runtime: { exec_path: "run", ...runtime },
    ...more
  })

/** A registry over an image whose folder `tools` holds these files; a name that ends in `run` is executable. */
const registryOf = Effect.fnUntraced(function* (files: Readonly<Record<string, string>> = {}) {
  const { root, outside } = yield* temporaryWorkspace
  for (const scope of ["global", "agent"]) mkdirSync(join(outside, "tools", scope), { recursive: true })
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(outside, "tools", name), text)
    if (name.endsWith("run")) chmodSync(join(outside, "tools", name), 0o755)
  }
  const plane = yield* makePlane
  const base = Arbiter.layer.pipe(
    Layer.provideMerge(
      Layer.mergeAll(
        EventLog.layer(SESSION),
        AgentSettings.layer(settingsOf(1)),
        plane.layer(1),
        Layer.mock(Replication, { acked: () => 0, reached: () => Effect.void }),
        Workspace.layer({ root }),
        ProcessRunner.layer({ ownsPidNamespace: false }),
        NodeServices.layer
      )
    )
  )
  const layer = ToolRegistry.layer({ choir: outside, rg: "rg" }).pipe(Layer.provide(base))
  return yield* Effect.provide(Effect.service(ToolRegistry), layer)
})

const BROKEN: ReadonlyArray<readonly [string, Readonly<Record<string, string>>, RegExp]> = [
  ["is no JSON", { "global/a.json": "{" }, /a\.json cannot be used/u],
  [
    "lacks its description",
    { "global/a.json": '{"llm":{"name":"a","input_schema":{}},"runtime":{"exec_path":"run"}}' },
    /description/u
  ],
  ["has a key that nobody knows", { "global/a.json": manifest("a", { sudo: true }), "global/run": "" }, /sudo/u],
  ["has a name that is none", { "global/a.json": manifest("A-b"), "global/run": "" }, /tool name/u],
  ["declares two effects", { "global/a.json": manifest("a", { effect: "none", side_effect: "none" }) }, /not both/u],
  ["has no executable", { "global/a.json": manifest("a") }, /run is missing or not executable/u],
  [
    "has an executable that is not",
    { "agent/a.json": manifest("a", { exec_path: "file" }), "agent/file": "x" },
    /not executable/u
  ],
  ["names a folder", { "agent/a.json": manifest("a", { exec_path: "/choir/tools/agent" }) }, /leaves the folder/u],
  [
    "runs something elsewhere",
    { "agent/a.json": manifest("a", { exec_path: "../global/run" }), "global/run": "" },
    /leaves the folder/u
  ],
  ["runs something of the host", { "agent/a.json": manifest("a", { exec_path: "/bin/sh" }) }, /leaves the folder/u],
  ["takes a built-in tool's name", { "agent/a.json": manifest("choir.exec"), "agent/run": "" }, /built-in/u],
  ["takes a control tool's name", { "global/a.json": manifest("choir.core.spawn"), "global/run": "" }, /built-in/u],
  [
    "is one of two in a folder",
    { "global/a.json": manifest("x"), "global/b.json": manifest("x"), "global/run": "" },
    /has it twice/u
  ],
  ["is too large", { "global/a.json": " ".repeat(MANIFEST_BYTES_MAX + 1) }, /larger than/u],
  [
    "has a schema that cannot be checked",
    {
      "global/a.json": JSON.stringify({
        llm: {
          name: "a",
          description: "d",
          input_schema: { type: "object", properties: { x: { $ref: "#/$defs/no" } } }
        },
        runtime: { exec_path: "run" }
      }),
      "global/run": ""
    },
    /input_schema/u
  ]
]

describe("ToolRegistry", () => {
  for (const [what, files, reason] of BROKEN)
    it.live(`keeps the agent from starting when a manifest ${what} (8.8)`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(registryOf(files))
        assert.strictEqual(error._tag, "ToolBroken")
        assert.match(error.message, reason)
      })
    )

  it.live("offers each lane its tools under wire names, and a job no more than it was allowed", () =>
    Effect.gen(function* () {
      const registry = yield* registryOf({
        "global/a.json": manifest("mem.both"),
        "global/b.json": manifest("mem.edge", { exposure: "edge" }),
        "global/c.json": manifest("mem.core", { exposure: "core" }),
        "global/run": ""
      })
      const names = (lane: LaneId, allowed?: ReadonlyArray<string>) =>
        registry.offered(lane, allowed).map((tool) => tool.function.name)
      const common = ["choir-fs-read", "choir-fs-write", "choir-fs-search", "choir-exec", "mem-both"]
      const control = ["choir-core-spawn", "choir-core-inject", "choir-core-cancel", "choir-core-list"]
      assert.sameMembers(names(EDGE), [...common, ...control, "mem-edge"])
      assert.sameMembers(names(CORE), [...common, "choir-core-report", "mem-core"])
      assert.sameMembers([...registry.names(EDGE)], names(EDGE))
      assert.sameMembers(names(CORE, ["mem.core", "mem.edge"]), ["mem-core", "choir-core-report"])
      for (const lane of [EDGE, CORE])
        for (const { function: tool } of registry.offered(lane))
          assert.doesNotHaveAnyKeys(tool, ["locks", "effect", "exec_path", "timeout_ms", "secret_resources"])
    })
  )

  it.live("finds a tool by either spelling, only for the lanes that may see it", () =>
    Effect.gen(function* () {
      const registry = yield* registryOf()
      assert.strictEqual(registry.find(EDGE, "choir-exec"), registry.find(CORE, "choir.exec"))
      assert.isDefined(registry.find(EDGE, "choir-core-spawn"))
      for (const [lane, name] of [
        [CORE, "choir-core-spawn"],
        [CORE, "choir-core-cancel"],
        [EDGE, "choir-core-report"],
        [EDGE, "nothing"],
        [EDGE, ""],
        [EDGE, "__proto__"]
      ] as const)
        assert.isUndefined(registry.find(lane, name), name)
    })
  )

  it.live("lets an agent's tool stand for the global one of its name (6.5)", () =>
    Effect.gen(function* () {
      const registry = yield* registryOf({
        "global/a.json": manifest("mem.x", { effect: "none" }),
        "agent/a.json": manifest("mem.x", { effect: "workspace" }),
        "global/run": "",
        "agent/run": ""
      })
      const tool = registry.find(EDGE, "mem-x")
      assert.strictEqual(tool !== undefined && !isControl(tool) && tool.effect, "workspace")
    })
  )

  it.live("has the built-in tools alone when the image has none", () =>
    Effect.gen(function* () {
      const registry = yield* registryOf()
      assert.strictEqual(registry.names(EDGE).length, 8)
    })
  )
})

describe("the core tools", () => {
  const propose = Effect.fnUntraced(function* (name: string, input: unknown) {
    const tool = (yield* registryOf()).find(EDGE, name)
    if (tool === undefined || !isControl(tool)) return assert.fail(name)
    return yield* tool.propose(input, CallId.make("s-1-2-0"))
  })

  it.live("spawn with the defaults of spec 12.7, for the core model (E14)", () =>
    Effect.gen(function* () {
      const proposal = yield* propose("choir-core-spawn", { job_name: "a", task_spec: "do", surplus: 1 })
      assert.deepStrictEqual<unknown>(proposal, {
        type: "Spawn",
        call_id: "s-1-2-0",
        model: "small",
        start: {
          job_name: "a",
          task_spec: "do",
          context_bundle: { facts: [], excerpts: [], constraints: [] },
          tool_constraints: { allowed_tools: [], time_budget_ms: 0 },
          verbosity: "normal"
        }
      })
    })
  )

  it.live("instruct and cancel by name", () =>
    Effect.gen(function* () {
      const inject = yield* propose("choir-core-inject", { job_name: "a", content: "c" })
      assert.deepStrictEqual<unknown>(inject, { type: "InjectCore", call_id: "s-1-2-0", job_name: "a", content: "c" })
      const cancel = yield* propose("choir-core-cancel", { job_name: "a" })
      assert.deepStrictEqual<unknown>(cancel, {
        type: "CancelCore",
        call_id: "s-1-2-0",
        job_name: "a",
        reason: "cancelled by edge"
      })
    })
  )

  for (const [name, input, problem] of [
    ["choir-core-spawn", { job_name: "A B", task_spec: "do" }, /job name/u],
    ["choir-core-spawn", { job_name: "a", task_spec: "" }, /task_spec/u],
    ["choir-core-spawn", { job_name: "a" }, /task_spec/u],
    ["choir-core-spawn", { job_name: "a", task_spec: "x", verbosity: "loud" }, /verbosity/u],
    ["choir-core-spawn", [], /object/iu],
    ["choir-core-inject", { job_name: "a", content: "" }, /content/u],
    ["choir-core-cancel", {}, /job_name/u]
  ] as const)
    it.live(`refuse ${JSON.stringify(input)} for ${name} in words for the model`, () =>
      Effect.gen(function* () {
        const refused = yield* Effect.flip(propose(name, input))
        assert.match(refused._tag === "InvalidInput" ? refused.problem : "", problem)
      })
    )

  it.live("list nothing where nothing runs, and let nobody report but a job", () =>
    Effect.gen(function* () {
      const registry = yield* registryOf()
      const run = Effect.fnUntraced(function* (lane: LaneId, name: string, input: unknown) {
        const tool = registry.find(lane, name)
        if (tool === undefined || isControl(tool)) return assert.fail(name)
        const prepared = yield* tool.prepare(input)
        return yield* prepared.run({ lane, call_id: CallId.make("c"), seen: () => undefined })
      })
      assert.deepStrictEqual((yield* run(EDGE, "choir-core-list", {})).output, { jobs: [] })
      assert.strictEqual((yield* run(CORE, "choir-core-report", { kind: "plan", text: "p" })).status, "error")
      for (const kind of ["final_result", "error"])
        assert.strictEqual(
          (yield* Effect.flip(run(CORE, "choir-core-report", { kind, text: "p" })))._tag,
          "InvalidInput"
        )
    })
  )
})
