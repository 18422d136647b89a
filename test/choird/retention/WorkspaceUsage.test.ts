import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { countFolder, WorkspaceUsage } from "#src/choird/retention/WorkspaceUsage.ts"
import { AgentId, ResourceName } from "#schema/Ids.ts"
import { agentView } from "../../support/agentView.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { hideDeep } from "../../support/retention.ts"
import { BINDINGS, CONFIG, makeHome } from "../../support/stores.ts"

const MIB = 1024 ** 2
const HELPER = AgentId.make("helper")
const MAIN = ResourceName.make("main")

describe("the count of a workspace", () => {
  it.live("is of everything below it in small steps, and follows no link", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const outside = yield* temporaryFolder
      writeFileSync(join(outside, "large"), Buffer.alloc(8 * MIB, 1))
      for (let index = 0; index < 600; index += 1) {
        mkdirSync(join(folder, `d${index % 7}`), { recursive: true })
        writeFileSync(join(folder, `d${index % 7}`, `f${index}`), Buffer.alloc(4096, 1))
      }
      symlinkSync(outside, join(folder, "link"))
      const { bytes, entries, partial } = yield* countFolder(folder)
      assert.deepStrictEqual([entries, partial], [608, false])
      assert.isAtLeast(bytes, 600 * 4096)
      assert.isBelow(bytes, 8 * MIB)
    })
  )

  it.live("follows no link that takes the place of a folder which waits to be looked into, or of one above it", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const outside = yield* temporaryFolder
      mkdirSync(join(outside, "deep"))
      for (const name of ["large", "deep/large"]) writeFileSync(join(outside, name), Buffer.alloc(8 * MIB, 1))
      mkdirSync(join(folder, "above/deep"), { recursive: true })
      for (let index = 0; index < 300; index += 1) mkdirSync(join(folder, "above/deep", `d${index}`))
      // The first step ends after the folders in `deep` were found.
      const swap = Effect.sync(() => {
        if (existsSync(join(folder, "moved"))) return
        renameSync(join(folder, "above"), join(folder, "moved"))
        for (let index = 0; index < 300; index += 1) mkdirSync(join(outside, "deep", `d${index}`))
        writeFileSync(join(outside, "deep", "d7", "large"), Buffer.alloc(8 * MIB, 1))
        symlinkSync(outside, join(folder, "above"))
      })
      const { bytes } = yield* countFolder(folder, undefined, swap)
      assert.isBelow(bytes, 4 * MIB)
    })
  )

  it.live("includes what is below a folder whose name is not UTF-8", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const named = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0xff])])
      mkdirSync(named)
      writeFileSync(Buffer.concat([named, Buffer.from("/large")]), Buffer.alloc(2 * MIB, 1))
      const { bytes, entries, partial } = yield* countFolder(folder)
      assert.deepStrictEqual([entries, partial], [2, false])
      assert.isAtLeast(bytes, 2 * MIB)
    })
  )

  it.live("includes a workspace that its operator reaches by a link", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      mkdirSync(join(folder, "real/inner"), { recursive: true })
      writeFileSync(join(folder, "real/inner/file"), "x")
      symlinkSync(join(folder, "real"), join(folder, "link"))
      assert.strictEqual((yield* countFolder(join(folder, "link"))).entries, 2)
    })
  )

  it.live("ends at its limits and says that there is more; what is not there holds nothing", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      for (let index = 0; index < 300; index += 1) mkdirSync(join(folder, `d${index}`))
      assert.isTrue((yield* countFolder(folder, { entries_max: 10, folders_max: 1000 })).partial)
      assert.isTrue((yield* countFolder(folder, { entries_max: 10_000, folders_max: 5 })).partial)
      assert.deepStrictEqual(yield* countFolder(join(folder, "none")), { bytes: 0, entries: 0, partial: false })
    })
  )
})

describe("what a count cannot read", () => {
  it.live("makes it a part, however deep or closed it is, and what went meanwhile does not", () =>
    Effect.gen(function* () {
      const deep = yield* temporaryFolder
      yield* hideDeep(deep, 8 * MIB)
      const { bytes, partial } = yield* countFolder(deep)
      assert.isBelow(bytes, 8 * MIB)
      assert.isTrue(partial)
      // No user is refused a name that is too long, so this one shows what any refusal does.
      assert.isTrue((yield* countFolder(join(deep, "x".repeat(300)))).partial)
      assert.isFalse((yield* countFolder(join(deep, "gone"))).partial)
    })
  )
})

describe("the quota of a workspace", () => {
  it.live("is told to the person once a day, and no longer when there is less", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const config = { ...CONFIG, workspaces: { main: { path: folder } }, retention: { workspace_mb: 1 } }
      const told = new Map<string, string>()
      const world = Layer.mergeAll(
        Layer.mock(Outbox, { notify: ({ source_id, text }) => Effect.sync(() => void told.set(source_id, text)) }),
        Layer.mock(Lifecycle, {
          list: Effect.succeed([agentView(HELPER, { bindings: BINDINGS })]),
          changes: Stream.never
        }),
        Layer.unwrap(Effect.map(makeHome(config), (home) => ConfigStore.layer({ home })))
      )
      yield* Effect.gen(function* () {
        const usage = yield* WorkspaceUsage
        yield* usage.look
        assert.strictEqual(told.size, 0)
        writeFileSync(join(folder, "large"), Buffer.alloc(3 * MIB, 1))
        yield* usage.look
        yield* usage.look
        assert.match([...told.values()].join(), /^the workspace main holds 3\.\d MiB, more than its limit of 1\.0 MiB/u)
        assert.strictEqual(told.size, 1)
        assert.isTrue((yield* usage.all).get(MAIN)?.over)
        assert.strictEqual((yield* usage.now).get(MAIN)?.entries, 1)
        writeFileSync(join(folder, "small"), "1")
        assert.strictEqual((yield* usage.all).get(MAIN)?.entries, 1)
        assert.strictEqual((yield* usage.now).get(MAIN)?.entries, 2)
        rmSync(join(folder, "large"))
        yield* usage.look
        assert.isFalse((yield* usage.all).get(MAIN)?.over)
        told.clear()
        yield* hideDeep(folder, 3 * MIB)
        yield* usage.look
        assert.match(
          [...told.values()].join(),
          /^the workspace main holds at least .* cannot be measured completely, so it is treated as over/u
        )
        assert.isTrue((yield* usage.all).get(MAIN)?.over)
      }).pipe(Effect.provide(Layer.provide(WorkspaceUsage.layer, world)))
    })
  )
})
