import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { CallId, EDGE, LaneId, SecretName } from "#schema/Ids.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { ToolRegistry } from "#src/agent/calls/ToolRegistry.ts"
import { isControl } from "#src/agent/tools/Tool.ts"
import { IMAGE_TOOLS_MAX } from "#src/shared/limits.ts"
import { temporaryWorkspace } from "../../support/workspace.ts"
import { layerRegistry } from "../../support/toolRegistry.ts"
import { MANIFEST_BYTES_MAX } from "#src/shared/image/toolManifest.ts"

const CORE = LaneId.make("core:a")

const manifest = (name: string, runtime: object = {}, more: object = {}) =>
  JSON.stringify({
    llm: { name, description: "d", input_schema: { type: "object" } },
    runtime: { exec_path: "run", ...runtime },
    ...more
  })

/** choird, which hands out these secrets, each once, and knows of another that has no value. */
const planeWith = (secrets: Readonly<Record<string, string>>) => {
  const asked = new Set<string>()
  return Layer.mock(ControlPlane, {
    secrets: (names) => {
      for (const name of names) if (asked.has(name)) return Effect.die(`${name} was asked for twice`)
      for (const name of names) asked.add(name)
      const held = names.filter((name) => Object.hasOwn(secrets, name))
      const missing = names.filter((name) => !held.includes(name))
      return Effect.succeed({
        secrets: new Map(held.map((name) => [name, Redacted.make(secrets[name] ?? "")])),
        unbound: new Set(missing.filter((name) => name !== "empty")),
        unset: new Set(missing.filter((name) => name === "empty"))
      })
    }
  })
}

/** What makes an image's folder `tools` of texts; a name that ends in `run` is executable, a text that begins with `-> ` a link. */
const writeImage = (choir: string, files: Readonly<Record<string, string>>) => {
  mkdirSync(join(choir, "tools"))
  for (const scope of ["global", "agent"]) if (!Object.hasOwn(files, scope)) mkdirSync(join(choir, "tools", scope))
  for (const [name, text] of Object.entries(files)) {
    const path = join(choir, "tools", name)
    if (text.startsWith("-> ")) symlinkSync(text.slice(3), path)
    else if (text === "folder") mkdirSync(path)
    else writeFileSync(path, text)
    if (name.endsWith("run") && !text.startsWith("-> ")) chmodSync(path, 0o755)
  }
}

/** A registry over an image of these files, and the store that it fills. */
const loaded = Effect.fnUntraced(function* (
  files: Readonly<Record<string, string>> = {},
  secrets: Readonly<Record<string, string>> = {}
) {
  const { root, outside } = yield* temporaryWorkspace
  writeImage(outside, files)
  const layer = layerRegistry({ choir: outside, root }, planeWith(secrets))
  return yield* Effect.provide(Effect.all({ registry: ToolRegistry, store: SecretStore }), layer)
})

const registryOf = (files?: Readonly<Record<string, string>>) => Effect.map(loaded(files), ({ registry }) => registry)

const RUN = { "global/run": "", "agent/run": "" }

/** A manifest whose input_schema has one more keyword. */
const withSchema = (more: object) =>
  JSON.stringify({
    llm: { name: "a", description: "d", input_schema: { type: "object", ...more } },
    runtime: { exec_path: "run" }
  })

/** What is wrong, the files, the manifest that is named, and the reason. */
const BROKEN: ReadonlyArray<readonly [string, Readonly<Record<string, string>>, string, RegExp]> = [
  ["is no JSON", { "global/a.json": "{" }, "global/a.json", /JSON/u],
  ["is empty", { "agent/a.json": "" }, "agent/a.json", /JSON/u],
  [
    "lacks its description",
    { "global/a.json": '{"llm":{"name":"a","input_schema":{}},"runtime":{"exec_path":"run"}}' },
    "global/a.json",
    /description/u
  ],
  [
    "takes an input that is no object",
    {
      ...RUN,
      "agent/a.json": JSON.stringify({
        llm: { name: "a", description: "d", input_schema: { type: "array" } },
        runtime: { exec_path: "run" }
      })
    },
    "agent/a.json",
    /llm\.input_schema.*"object"/u
  ],
  ["has a key that nobody knows", { ...RUN, "global/a.json": manifest("a", { sudo: true }) }, "global/a.json", /sudo/u],
  ["has a name that is none", { ...RUN, "global/a.json": manifest("A-b") }, "global/a.json", /tool name/u],
  ["has a name too long", { ...RUN, "global/a.json": manifest("a".repeat(65)) }, "global/a.json", /64/u],
  [
    "declares two effects",
    { "global/a.json": manifest("a", { effect: "none", side_effect: "none" }) },
    "global/a.json",
    /not both/u
  ],
  [
    "has a deadline of more than an hour",
    { ...RUN, "global/a.json": manifest("a", { timeout_ms: 3_600_001 }) },
    "global/a.json",
    /timeout_ms/u
  ],
  [
    "has a lock that means nothing",
    { ...RUN, "global/a.json": manifest("a", { locks: [{ resource: "disk", mode: "X" }] }) },
    "global/a.json",
    /"disk" cannot be locked: no such resource/u
  ],
  ["has no executable", { "global/a.json": manifest("a") }, "global/a.json", /its executable run is missing/u],
  [
    "has an executable that is not",
    { "agent/a.json": manifest("a", { exec_path: "file" }), "agent/file": "x" },
    "agent/a.json",
    /file is not executable: chmod \+x/u
  ],
  ["names a folder", { "agent/a.json": manifest("a"), "agent/run": "folder" }, "agent/a.json", /not a regular file/u],
  [
    "names its own folder",
    { "agent/a.json": manifest("a", { exec_path: "/choir/tools/agent" }) },
    "agent/a.json",
    /leaves the folder tools\/agent/u
  ],
  [
    "runs something elsewhere",
    { ...RUN, "agent/a.json": manifest("a", { exec_path: "../global/run" }) },
    "agent/a.json",
    /leaves the folder/u
  ],
  [
    "runs something of the host",
    { "agent/a.json": manifest("a", { exec_path: "/bin/sh" }) },
    "agent/a.json",
    /leaves the folder/u
  ],
  [
    "runs a link to the host",
    { "agent/a.json": manifest("a"), "agent/run": "-> /bin/sh" },
    "agent/a.json",
    /run is a symbolic link/u
  ],
  [
    "runs something through a link",
    { ...RUN, "agent/a.json": manifest("a", { exec_path: "sub/run" }), "agent/sub": "-> ../global" },
    "agent/a.json",
    /reached through one/u
  ],
  ["is a link itself", { "agent/a.json": "-> /etc/hostname" }, "agent/a.json", /not a regular file/u],
  ["is a folder", { "agent/a.json": "folder" }, "agent/a.json", /not a regular file/u],
  ["takes a built-in tool's name", { ...RUN, "agent/a.json": manifest("choir.exec") }, "agent/a.json", /built-in/u],
  [
    "takes a control tool's name",
    { ...RUN, "global/a.json": manifest("choir.core.spawn") },
    "global/a.json",
    /built-in tool has the name choir\.core\.spawn/u
  ],
  [
    "is one of two in a folder",
    { ...RUN, "global/a.json": manifest("x"), "global/b.json": manifest("x") },
    "global/b.json",
    /tools\/global\/a\.json has the same name x/u
  ],
  ["is too large", { "global/a.json": " ".repeat(MANIFEST_BYTES_MAX + 1) }, "global/a.json", /larger than/u],
  [
    "refers to a definition that is not there",
    { ...RUN, "global/a.json": withSchema({ properties: { x: { $ref: "#/$defs/no" } } }) },
    "global/a.json",
    /input_schema/u
  ],
  ...["not", "if", "dependentRequired", "unevaluatedProperties", "contains"].map(
    (keyword) =>
      [
        `uses the keyword ${keyword}, which cannot be checked`,
        { ...RUN, "global/a.json": withSchema({ properties: { x: { [keyword]: { type: "string" }, else: false } } }) },
        "global/a.json",
        new RegExp(`"${keyword}"`, "u")
      ] as const
  ),
  [
    "names a secret of nothing bound to the agent",
    { ...RUN, "agent/a.json": manifest("a", { secret_resources: ["github"] }) },
    "agent/a.json",
    /names "github", which belongs to no bound resource\. .*agents\.<id>\.defaults/u
  ],
  [
    "names a secret that has no value",
    { ...RUN, "agent/a.json": manifest("a", { secret_resources: ["empty"] }) },
    "agent/a.json",
    /has no value\. Set it: choirctl secret set empty/u
  ],
  [
    "names the secret of a model that has none",
    { ...RUN, "agent/a.json": manifest("a", { secret_resources: ["llm"] }) },
    "agent/a.json",
    /"llm" is not available: the model small has none/u
  ],
  [
    "names more secrets than a tool may",
    { ...RUN, "agent/a.json": manifest("a", { secret_resources: Array.from({ length: 17 }, (_, n) => `s${n}`) }) },
    "agent/a.json",
    /secret_resources/u
  ]
]

describe("ToolRegistry", () => {
  for (const [what, files, file, reason] of BROKEN)
    it.live(`keeps the agent from starting when a manifest ${what}`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(registryOf(files))
        if (error._tag !== "ToolBroken") return assert.fail(error.message)
        assert.isTrue(error.file.endsWith(`/tools/${file}`), error.file)
        assert.match(error.reason, reason)
        assert.strictEqual(error.message, `the tool ${error.file} cannot be used: ${error.reason}`)
      })
    )

  it.live("keeps the agent from starting when a tools folder cannot be read, or holds too many", () =>
    Effect.gen(function* () {
      const unreadable = yield* Effect.flip(registryOf({ global: "no folder" }))
      assert.match(unreadable.message, /^the tool .*\/tools\/global cannot be used: /u)
      const many = Array.from({ length: IMAGE_TOOLS_MAX + 1 }, (_, n) => [`agent/t${n}.json`, "{}"] as const)
      const refused = yield* Effect.flip(registryOf(Object.fromEntries(many)))
      assert.include(refused.message, `more than ${IMAGE_TOOLS_MAX} manifests`)
    })
  )

  it.live("asks choird once for each secret that its tools name, and nothing for the others", () =>
    Effect.gen(function* () {
      const secrets = { notion: "n-value", mail: "m-value" }
      const { store } = yield* loaded(
        {
          ...RUN,
          "global/a.json": manifest("a", { secret_resources: ["notion", "mail"] }),
          "agent/b.json": manifest("b", { secret_resources: ["notion"] }),
          "agent/c.json": manifest("c")
        },
        secrets
      )
      for (const [name, value] of Object.entries(secrets)) {
        const held = yield* store.get(SecretName.make(name))
        assert.strictEqual(held === undefined ? undefined : Redacted.value(held), value)
      }
    })
  )

  it.live("tells whose results models see only in outline", () =>
    Effect.gen(function* () {
      const registry = yield* registryOf({
        ...RUN,
        "global/a.json": manifest("mem.masked", { prompt_mask: true }),
        "global/b.json": manifest("mem.open")
      })
      const names = ["mem.masked", "mem-masked", "mem.open", "choir.exec", "choir.core.spawn", "nothing", ""]
      assert.deepStrictEqual(
        names.filter((name) => registry.masked(name)),
        ["mem.masked", "mem-masked"]
      )
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
      const names = (lane: LaneId, allowed: ReadonlyArray<string> = []) =>
        registry.offered(lane, allowed).map((tool) => tool.name)
      const builtIn = yield* registryOf()
      const common = ["choir-fs-read", "choir-fs-write", "choir-fs-search", "choir-exec"]
      const control = ["choir-core-spawn", "choir-core-inject", "choir-core-cancel", "choir-core-list"]
      assert.includeMembers([...builtIn.names(EDGE)], [...common, ...control])
      assert.includeMembers([...builtIn.names(CORE)], [...common, "choir-core-report"])
      assert.sameMembers(names(EDGE), [...builtIn.names(EDGE), "mem-both", "mem-edge"])
      assert.sameMembers(names(CORE), [...builtIn.names(CORE), "mem-both", "mem-core"])
      assert.sameMembers([...registry.names(EDGE)], names(EDGE))
      assert.sameMembers(names(CORE, ["mem.core", "mem.edge"]), ["mem-core", "choir-core-report", "choir-memory-delta"])
      for (const lane of [EDGE, CORE])
        for (const tool of registry.offered(lane))
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

  it.live("lets an agent's tool replace the global one of its name", () =>
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
      for (const name of registry.names(EDGE)) assert.match(name, /^choir-/u)
    })
  )
})

describe("the core tools", () => {
  const propose = Effect.fnUntraced(function* (name: string, input: unknown) {
    const tool = (yield* registryOf()).find(EDGE, name)
    if (tool === undefined || !isControl(tool)) return assert.fail(name)
    return yield* tool.command(input, CallId.make("s-1-2-0"), EDGE)
  })

  it.live("spawn with the default limits and context, for the core model (E14)", () =>
    Effect.gen(function* () {
      const proposal = yield* propose("choir-core-spawn", { job_name: "a", task_spec: "do" })
      const { tools = [], ...command } = proposal as typeof proposal & { readonly tools?: ReadonlyArray<object> }
      assert.isNotEmpty(tools)
      assert.deepStrictEqual<unknown>(command, {
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

  it.live("take the tools of a job by the names that models see, and by the canonical ones", () =>
    Effect.gen(function* () {
      const spawn = (allowed_tools: ReadonlyArray<string>) =>
        propose("choir-core-spawn", { job_name: "a", task_spec: "do", tool_constraints: { allowed_tools } })
      const proposal = yield* spawn(["choir-fs-read", "choir.exec", "mem-look_up"])
      assert.deepStrictEqual<unknown>(proposal.type === "Spawn" && proposal.start.tool_constraints.allowed_tools, [
        "choir.fs.read",
        "choir.exec",
        "mem.look_up"
      ])
      const refused = yield* Effect.flip(spawn(["choir-fs-read", "rm -rf"]))
      const problem = refused._tag === "InvalidInput" ? refused.problem : ""
      assert.match(problem, /is not the name of a tool, such as choir-fs-read/u)
      assert.include(problem, "tool_constraints.allowed_tools.1 is")
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

  it.live("list nothing where nothing runs, and let a job report, but not its end", () =>
    Effect.gen(function* () {
      const registry = yield* registryOf()
      const run = Effect.fnUntraced(function* (lane: LaneId, name: string, input: unknown) {
        const tool = registry.find(lane, name)
        if (tool === undefined || isControl(tool)) return assert.fail(name)
        const prepared = yield* tool.prepare(input)
        return yield* prepared.run({ lane, call_id: CallId.make("c"), seen: () => undefined, network: true })
      })
      assert.deepStrictEqual((yield* run(EDGE, "choir-core-list", {})).output, { jobs: [] })
      assert.strictEqual((yield* run(CORE, "choir-core-report", { kind: "plan", text: "p" })).status, "success")
      for (const kind of ["final_result", "error"])
        assert.strictEqual(
          (yield* Effect.flip(run(CORE, "choir-core-report", { kind, text: "p" })))._tag,
          "InvalidInput"
        )
    })
  )
})
