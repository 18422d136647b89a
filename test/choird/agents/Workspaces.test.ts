import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Schema } from "effect"
import { mkdirSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { Config } from "#schema/Config.ts"
import { AgentId, ResourceName, SessionId } from "#schema/Ids.ts"
import type { AgentStatus } from "#schema/AgentSummary.ts"
import { type LeaseRow, Leases, ResourceHeld } from "#src/choird/agents/Leases.ts"
import { AgentRefused } from "#src/choird/agents/AgentRefused.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { Workspaces } from "#src/choird/agents/Workspaces.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Audit, type AuditEntry } from "#src/choird/logs/Audit.ts"
import { ContainerError, ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import type { WorkspaceLabel } from "#schema/WorkspaceLabel.ts"
import { WorkspaceLabels } from "#src/choird/sessions/WorkspaceLabels.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { agentView } from "../../support/agentView.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { activeSession, BINDINGS, CONFIG } from "../../support/stores.ts"

const HELPER = AgentId.make("helper")
const SESSION = SessionId.make("0000000000000001")
const workspace = (name: string) => ResourceName.make(name)

/** An installation whose agent stands still, holds `main` or works in a folder; what happens is noted in order. */
const world = Effect.fnUntraced(function* (
  options: {
    readonly status?: AgentStatus
    readonly leased?: string
    readonly works_in?: string
    readonly left?: boolean
    /** It cannot be stopped. */
    readonly stuck?: boolean
  } = {}
) {
  const root = yield* temporaryFolder
  for (const name of ["main", "main/inner", "other", "home"]) mkdirSync(join(root, name))
  symlinkSync(join(root, "main"), join(root, "alias"))
  const paths = (...names: ReadonlyArray<string>) =>
    Object.fromEntries(names.map((name) => [name, { path: join(root, name) }]))
  const config = Schema.decodeUnknownSync(Config)({ ...CONFIG, workspaces: paths("main", "alias", "other") })
  const started_with = Schema.decodeUnknownSync(Config)({
    ...CONFIG,
    workspaces: { ...paths("main"), main: { path: join(root, options.works_in ?? "elsewhere") } }
  })
  const done: Array<string> = []
  let status = options.status ?? "stopped"
  let held = options.leased
  const view = () => agentView(HELPER, { status, session_id: SESSION, bindings: BINDINGS, started_with })
  const row = (): LeaseRow => ({ kind: "workspace", name: held ?? "", agent_id: HELPER, session_id: SESSION })
  const withheld: Array<string> = []
  const labels = new Map<string, WorkspaceLabel>()
  const audit: Array<AuditEntry> = []
  const services = Workspaces.layer.pipe(
    Layer.provide([
      Layer.mock(Audit, { record: (entry) => Effect.sync(() => void audit.push(entry)) }),
      Layer.mock(ConfigStore, { home: join(root, "home"), current: Effect.succeed({ config, version: 1 }) }),
      Layer.mock(WorkspaceLabels, {
        of: (path) => Effect.sync(() => labels.get(path) ?? {}),
        drop: (path) => Effect.sync(() => void labels.delete(path))
      }),
      Layer.mock(Leases, {
        all: Effect.sync(() => (held === undefined ? [] : [row()])),
        withhold: (wanted) =>
          Effect.gen(function* () {
            const kind = "workspace" as const
            const resource = ResourceName.make(held ?? "none")
            if (wanted.some(({ name }) => name === held))
              return yield* new ResourceHeld({ kind, resource, holder: HELPER })
            yield* Effect.acquireRelease(
              Effect.sync(() => withheld.push(...wanted.map(({ name }) => name))),
              () => Effect.sync(() => withheld.splice(0))
            )
          })
      }),
      Layer.mock(Lifecycle, {
        list: Effect.sync(() => [view()]),
        view: () => Effect.sync(view),
        stop: (agent_id) =>
          Effect.gen(function* () {
            if (status === "stopped" || options.stuck === true)
              return yield* new AgentRefused({ kind: "NOT_RUNNING", agent_id, reason: "", hint: "" })
            done.push(`stop ${agent_id}`)
            status = "stopped"
            held = undefined
            return view()
          })
      }),
      Layer.mock(SessionStore, {
        latest: () =>
          Effect.sync(() =>
            Option.some({
              ...activeSession(HELPER, SESSION),
              container: { type: "docker", container_id: "0".repeat(64), name: "choir-helper.0" }
            })
          )
      }),
      Layer.mock(ContainerRuntime, {
        type: "docker",
        reap: ({ type }) =>
          options.left === true
            ? new ContainerError({ reason: "stuck", problem: "it does not die", fix: "docker rm" })
            : Effect.sync(() => void done.push(`reap ${type}`)),
        emptyWorkspace: (path, kept) =>
          Effect.sync(() => {
            const short = (text: string) => text.replace(`${root}/`, "")
            done.push(`empty ${short(path)} but ${kept.map(short).join(" ")}, withheld ${withheld.join(" ")}`)
          })
      })
    ])
  )
  const reset = (name: string) =>
    Effect.provide(
      Effect.flatMap(Workspaces, (workspaces) => workspaces.reset(workspace(name))),
      services
    )
  const trust = (name: string) =>
    Effect.provide(
      Effect.flatMap(Workspaces, (workspaces) => workspaces.trust(workspace(name))),
      services
    )
  return { audit, done, labels, reset, root, trust, withheld }
})

describe("Workspaces", () => {
  it.effect("forgets where files came from when it is emptied or trusted, under all names of the folder", () =>
    Effect.gen(function* () {
      const { audit, labels, reset, root, trust } = yield* world()
      const label: WorkspaceLabel = { written_from: ["web:evil.example"], received: true }
      const [alias, main] = [join(root, "alias"), join(root, "main")]
      labels.set(main, label).set(alias, label).set(join(root, "other"), label)
      assert.deepStrictEqual(yield* trust("main"), { name: workspace("main"), path: main, label })
      assert.deepStrictEqual([...labels.keys()], [join(root, "other")])
      assert.deepInclude(audit[0], { who: "operator", action: "workspace.trust" })
      yield* reset("other")
      assert.strictEqual(labels.size, 0)
    }).pipe(Effect.scoped)
  )

  it.effect("is not trusted while an agent works there, which would go on knowing", () =>
    Effect.gen(function* () {
      const { labels, root, trust } = yield* world({ leased: "main", status: "running" })
      labels.set(join(root, "main"), { received: true })
      const refused = yield* Effect.flip(trust("main"))
      assert.strictEqual(refused.kind, "WORKSPACE_HELD")
      assert.strictEqual(refused.hint, "choirctl agent stop helper")
      assert.strictEqual(labels.size, 1)
    }).pipe(Effect.scoped)
  )

  it.effect(
    "empties a free workspace while no agent can take it under any of its names, and says so in the audit (D43)",
    () =>
      Effect.gen(function* () {
        const { audit, done, reset, root, withheld } = yield* world()
        assert.deepStrictEqual(yield* reset("alias"), {
          name: workspace("alias"),
          path: join(root, "alias"),
          stopped: null
        })
        assert.deepStrictEqual(done, ["reap docker", "empty main but home other, withheld main alias"])
        assert.deepStrictEqual([withheld, audit.length], [[], 1])
        assert.deepStrictEqual(Reflect.get(Object(audit[0]), "action"), "workspace.reset")
      })
  )

  it.effect("stops the agent that holds it first, and is refused while that agent does not let go", () =>
    Effect.gen(function* () {
      const stuck = yield* world({ status: "running", leased: "main", works_in: "main", stuck: true })
      const refused = yield* Effect.flip(stuck.reset("main"))
      assert.deepStrictEqual([refused.kind, refused.hint], ["WORKSPACE_HELD", "choirctl agent stop helper"])
      assert.include(refused.message, 'leased by the agent "helper"')
      assert.strictEqual((yield* Effect.flip(stuck.reset("alias"))).kind, "WORKSPACE_HELD")
      assert.deepStrictEqual(stuck.done, [])
      for (const name of ["main", "alias"]) {
        const { done, reset } = yield* world({ status: "running", leased: "main", works_in: "main" })
        assert.strictEqual((yield* reset(name)).stopped, HELPER)
        assert.deepStrictEqual(done.slice(0, 2), ["stop helper", "reap docker"])
      }
    })
  )

  it.effect(
    "stops who works in the folder, around or below it, whatever config.json calls it by now, and nobody else",
    () =>
      Effect.gen(function* () {
        for (const works_in of ["main", "main/inner", "alias/inner", "."]) {
          const { done, reset } = yield* world({ status: "running", works_in })
          assert.strictEqual((yield* reset("main")).stopped, HELPER)
          assert.strictEqual(done[0], "stop helper", works_in)
          const stuck = yield* world({ status: "running", works_in, stuck: true })
          const refused = yield* Effect.flip(stuck.reset("main"))
          assert.deepStrictEqual([refused.kind, stuck.done], ["WORKSPACE_HELD", []], works_in)
          assert.include(refused.message, "helper works in the folder")
        }
        const elsewhere = yield* world({ status: "running", works_in: "other" })
        assert.strictEqual((yield* elsewhere.reset("main")).stopped, null)
      })
  )

  it.effect("deletes nothing while a container that should be gone may still write (R8)", () =>
    Effect.gen(function* () {
      const { done, reset } = yield* world({ status: "crashed", left: true })
      const refused = yield* Effect.flip(reset("main"))
      assert.deepStrictEqual([refused.kind, refused.reason, done], ["FAILED", "it does not die", []])
    })
  )

  it.effect("names the workspaces there are for one that there is not", () =>
    Effect.gen(function* () {
      const { reset } = yield* world()
      const refused = yield* Effect.flip(reset("constructor"))
      assert.deepStrictEqual([refused.kind, refused.hint], ["UNKNOWN_WORKSPACE", "known: main, alias, other"])
    })
  )
})
