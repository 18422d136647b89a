import { statfsSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it, layer } from "@effect/vitest"
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { AgentId } from "#schema/Ids.ts"
import { Disk, spaceOf } from "#src/choird/retention/Disk.ts"
import { DiskGuard, isLow } from "#src/choird/retention/DiskGuard.ts"
import { DiskHolders } from "#src/choird/retention/DiskHolders.ts"
import { WorkspaceUsage } from "#src/choird/retention/WorkspaceUsage.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { diskLimit } from "#src/shared/config/diskLimit.ts"
import { beginLife, database, LIVE, makeAgentHome, makeImage } from "../../support/choird.ts"
import { hideDeep, makeDisk } from "../../support/retention.ts"
import { LAYER_MS_MAX } from "../../support/size.ts"

const GIB = 1024 ** 3
const KEYS = { disk_free_mb: 2048, disk_free_percent: 5 }

describe("the limit of the free disk (R50)", () => {
  it("is the greater of a share and a size", () => {
    assert.strictEqual(diskLimit(KEYS, 10 * GIB), 2 * GIB)
    assert.strictEqual(diskLimit(KEYS, 60 * GIB), 3 * GIB)
    assert.strictEqual(diskLimit(KEYS, 100 * GIB), 5 * GIB)
    assert.strictEqual(diskLimit(KEYS, 1000 * GIB), 5 * GIB)
  })

  it("is left behind only when a little more is free, so that agents do not start and stop by turns", () => {
    assert.isTrue(isLow(false, 99, 100))
    assert.isFalse(isLow(false, 100, 100))
    assert.isTrue(isLow(true, 105, 100))
    assert.isFalse(isLow(true, 110, 100))
  })
})

describe("the number of files of a file system", () => {
  const stats = { bavail: 5, blocks: 10, bsize: 4096, bfree: 6, type: 0, ffree: 3, files: 7 }

  it("counts where there is one, and not where the file system makes room for files as it needs it", () => {
    const bytes = { free_bytes: 5 * 4096, total_bytes: 10 * 4096 }
    assert.deepStrictEqual(spaceOf(stats as never), { ...bytes, files: { free: 3, total: 7 } })
    assert.deepStrictEqual(spaceOf({ ...stats, ffree: 0, files: 0 } as never), bytes)
    for (const unlimited of [{ ffree: 2 ** 64 }, { ffree: 2 ** 64, files: 2 ** 64 }])
      assert.deepStrictEqual(spaceOf({ ...stats, ...unlimited } as never), bytes)
  })
})

layer(Disk.layer)("the disk", (it) => {
  it.effect("tells what the system tells, and nothing of a path that is not there", () =>
    Effect.gen(function* () {
      const disk = yield* Disk
      const { blocks, bsize } = statfsSync(tmpdir())
      const space = yield* disk.space(tmpdir())
      assert.strictEqual(space?.total_bytes, blocks * bsize)
      assert.isAtMost(space?.free_bytes ?? 0, blocks * bsize)
      assert.isUndefined(yield* disk.space("/no/such/place"))
    })
  )
})

const MIB = 1024 ** 2

/** Two agents with a workspace each, of which a quota allows 1 MiB, and a guard of a disk that the test fills. */
const twoAgents = Effect.gen(function* () {
  const both = (id: AgentId, { agents }: Readonly<Record<string, unknown>>) => {
    const known = agents as Readonly<Record<string, { readonly defaults: object }>>
    const other = { ...known[id], defaults: { ...known[id]?.defaults, workspace: "spare", dm: "hall" } }
    return { agents: { ...known, [`${id}-b`]: other }, retention: { workspace_mb: 1 } }
  }
  const { agent_id: hog, home, workspace } = yield* makeAgentHome(both)
  const calm = AgentId.make(`${hog}-b`)
  yield* makeImage(home, calm)
  const { guard, ...made } = yield* guarded(home)
  for (const agent_id of [hog, calm]) yield* made.life.lifecycle.start(agent_id, {})
  const statuses = Effect.map(made.life.lifecycle.list, (views) =>
    Object.fromEntries(views.map(({ agent_id, status }) => [agent_id === hog ? "hog" : "calm", status]))
  )
  const held = (session_id: string, log_bytes: number) =>
    Effect.flatMap(
      SqlClient.SqlClient,
      (sql) => sql`UPDATE choir_control.sessions SET log_bytes = ${log_bytes}
      WHERE session_id = ${session_id}`
    )
  return { ...made, calm, guard, held, hog, statuses, workspace }
})

/** A choird with a running agent, and a guard of a disk that the test fills. */
const setUp = Effect.gen(function* () {
  const { agent_id, home } = yield* makeAgentHome()
  const { disk, guard, life } = yield* guarded(home)
  const started = yield* life.lifecycle.start(agent_id, {})
  const session = life
    .within(Effect.flatMap(SessionStore, (sessions) => sessions.latest(agent_id)))
    .pipe(Effect.map(Option.getOrThrow))
  return { agent_id, disk, guard, home, life, session, session_id: started.session_id }
})

/** A choird in this home, and a guard of a disk that the test fills. */
const guarded = Effect.fnUntraced(function* (home: string) {
  const life = yield* beginLife(home)
  const disk = makeDisk()
  const guard = Context.get(
    yield* life.within(
      Layer.build(Layer.fresh(DiskGuard.layer).pipe(Layer.provide(Layer.merge(disk.layer, DiskHolders.layer))))
    ),
    DiskGuard
  )
  return { disk, guard, life }
})

describe("DiskGuard", LIVE, () => {
  layer(database, { excludeTestServices: true, timeout: LAYER_MS_MAX })((it) => {
    it.effect("pauses agents before the disk is full, tells their people, and wakes them without hands (R50)", () =>
      Effect.gen(function* () {
        const { agent_id, disk, guard, life, session, session_id } = yield* setUp
        yield* guard.look
        assert.deepInclude(yield* guard.status, { low: false, paused: [] })
        disk.free(GIB)
        yield* guard.look
        assert.deepInclude(yield* guard.status, { low: true, paused: [agent_id], limit_bytes: 5 * GIB })
        const view = yield* life.lifecycle.view(agent_id)
        assert.deepInclude(view as object, { status: "paused", session_id })
        assert.match(view.reason ?? "", /the disk of .* is almost full: 1\.0 GiB are free/u)
        // What a choird that dies now starts again.
        assert.deepInclude((yield* session) as object, { session_id, status: "active" })
        yield* life.told(agent_id, /I am pausing: the disk that I work on is almost full/u)
        const refused = yield* Effect.flip(life.lifecycle.start(agent_id, {}))
        assert.strictEqual(refused.kind, "NOT_READY")
        assert.match(refused.hint, /choirctl prune/u)
        yield* life.say(agent_id, "meanwhile")
        disk.free(5.2 * GIB)
        yield* guard.look
        assert.deepInclude(yield* guard.status, { low: true, paused: [agent_id] })
        disk.free(6 * GIB)
        yield* guard.look
        assert.deepInclude(yield* guard.status, { low: false, paused: [] })
        assert.deepInclude(yield* life.lifecycle.view(agent_id), {
          status: "running",
          session_id,
          epoch: 2,
          reason: null
        })
        yield* life.told(agent_id, /^2: meanwhile$/u)
        yield* life.told(agent_id, /There is space on the disk again/u)
        const actions = yield* life.within(Effect.flatMap(Audit, (audit) => audit.last({ count: 10, agent_id })))
        assert.deepStrictEqual(
          actions.map(({ action, who }) => `${who} ${action}`).filter((text) => /pause|wake/u.test(text)),
          ["choird agent.pause", "choird agent.wake"]
        )
      })
    )

    it.effect("pauses who is over its quota at the limit, the others at half of it, and wakes them all", () =>
      Effect.gen(function* () {
        const { disk, guard, life, statuses, workspace } = yield* twoAgents
        writeFileSync(join(workspace, "filled"), Buffer.alloc(2 * MIB, "x"))
        yield* life.within(Effect.flatMap(WorkspaceUsage, ({ look }) => look))
        disk.free(4.9 * GIB)
        yield* guard.look
        yield* guard.look
        assert.deepStrictEqual(yield* statuses, { hog: "paused", calm: "running" })
        disk.free(2.4 * GIB)
        yield* guard.look
        assert.deepStrictEqual(yield* statuses, { hog: "paused", calm: "paused" })
        disk.free(4.9 * GIB)
        yield* guard.look
        assert.deepStrictEqual(yield* statuses, { hog: "paused", calm: "paused" })
        disk.free(6 * GIB)
        yield* guard.look
        assert.deepStrictEqual(yield* statuses, { hog: "running", calm: "running" })
      })
    )

    it.effect("pauses the one that holds most where nobody is over a quota, the events of its session included", () =>
      Effect.gen(function* () {
        const { disk, guard, held, hog, life, statuses } = yield* twoAgents
        const { session_id } = yield* life.lifecycle.view(hog)
        yield* held(session_id ?? "", 3 * GIB)
        disk.free(4.9 * GIB)
        yield* guard.look
        yield* guard.look
        assert.deepStrictEqual(yield* statuses, { hog: "paused", calm: "running" })
      })
    )

    it.effect("pauses the one that holds most, too, where only who cannot be counted whole is over a quota", () =>
      Effect.gen(function* () {
        const { calm, disk, guard, held, life, statuses, workspace } = yield* twoAgents
        const { session_id } = yield* life.lifecycle.view(calm)
        yield* held(session_id ?? "", 3 * GIB)
        yield* hideDeep(workspace, 1)
        yield* life.within(Effect.flatMap(WorkspaceUsage, ({ look }) => look))
        disk.free(4.9 * GIB)
        yield* guard.look
        assert.deepStrictEqual(yield* statuses, { hog: "paused", calm: "paused" })
      })
    )

    it.effect("pauses who has the most files where few are left, the others at half of that, and wakes them all", () =>
      Effect.gen(function* () {
        const { disk, guard, hog, held, life, statuses, workspace } = yield* twoAgents
        // The other agent holds more bytes.
        const other = (yield* life.lifecycle.list).find(({ agent_id }) => agent_id !== hog)
        yield* held(other?.session_id ?? "", GIB)
        for (let index = 0; index < 20; index += 1) writeFileSync(join(workspace, `empty-${index}`), "")
        yield* life.within(Effect.flatMap(WorkspaceUsage, ({ look }) => look))
        disk.freeFiles(4900)
        yield* guard.look
        yield* guard.look
        assert.deepStrictEqual(yield* statuses, { hog: "paused", calm: "running" })
        assert.deepInclude(yield* guard.status, { low: true, lacks: ["files"], paused: [hog] })
        const { reason } = yield* life.lifecycle.view(hog)
        assert.match(
          reason ?? "",
          /is almost full: 4,900 files are free; .* paused below 5,000 files, all of them below 2,500 files, and they continue above 5,500 files$/u
        )
        disk.freeFiles(2400)
        yield* guard.look
        assert.deepStrictEqual(yield* statuses, { hog: "paused", calm: "paused" })
        disk.freeFiles(5400)
        yield* guard.look
        assert.deepStrictEqual(yield* statuses, { hog: "paused", calm: "paused" })
        disk.freeFiles(6000)
        yield* guard.look
        assert.deepStrictEqual(yield* statuses, { hog: "running", calm: "running" })
        assert.deepInclude(yield* guard.status, { low: false, lacks: [] })
      })
    )

    it.effect("leaves an agent stopped that its operator stopped while it was paused", () =>
      Effect.gen(function* () {
        const { agent_id, disk, guard, life, session } = yield* setUp
        disk.free(0)
        yield* guard.look
        const stopped = yield* life.lifecycle.stop(agent_id)
        assert.deepInclude(stopped, { status: "stopped", reason: null })
        assert.deepInclude(yield* session, { status: "stopped" })
        disk.free(50 * GIB)
        yield* guard.look
        assert.deepInclude(yield* life.lifecycle.view(agent_id), { status: "stopped" })
        assert.deepInclude(yield* life.lifecycle.start(agent_id, {}), { status: "running" })
      })
    )
  })
})
