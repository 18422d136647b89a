import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawn, spawnSync } from "node:child_process"
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { emptyWorkspace, mountedBelow } from "#src/choird/runtime/emptyWorkspace.ts"
import { whyNotRoot } from "../../support/packages.ts"
import { makeOutside, setLayers, setTraps } from "../../support/traps.ts"

const notRoot = whyNotRoot("emptyWorkspace for other users' files")
const PERSON = 12_345
/** Swaps during the race, so that it is one. */
const SWAPS_MIN = 50

const place = Effect.acquireRelease(
  Effect.sync(() => {
    const root = mkdtempSync("/tmp/choir-empty-")
    const [workspace, outside] = [join(root, "workspace"), join(root, "outside")]
    mkdirSync(workspace)
    return { root, workspace, outside, look: makeOutside(outside) }
  }),
  ({ root }) => Effect.sync(() => rmSync(root, { recursive: true, force: true }))
)

describe("emptyWorkspace", () => {
  it.live("deletes every trap and nothing that one leads to, no matter who owns them (R41)", () =>
    Effect.gen(function* () {
      const { look, outside, root, workspace } = yield* place
      const before = look()
      chmodSync(root, 0o755)
      const uids = notRoot === undefined ? [0, 231_072] : [process.getuid?.() ?? 0]
      for (const uid of uids) assert.isAbove(setTraps(workspace, outside, uid).length, 5)
      if (notRoot === undefined) setLayers(workspace, [0, PERSON, 0, 231_072])
      const { mode } = statSync(workspace)
      yield* emptyWorkspace(workspace, [])
      assert.deepStrictEqual(readdirSync(workspace), [])
      assert.strictEqual(statSync(workspace).mode, mode)
      assert.deepStrictEqual(look(), before)
      assert.strictEqual(statSync(join(outside, "file")).nlink, 1)
    })
  )

  it.live.skipIf(notRoot !== undefined)(
    "does the same as an ordinary user, and says what is not that user's to delete (R41)",
    () =>
      Effect.gen(function* () {
        const { look, outside, root, workspace } = yield* place
        chmodSync(root, 0o755)
        const before = look()
        setTraps(workspace, outside, PERSON)
        chownSync(workspace, PERSON, PERSON)
        chmodSync(workspace, 0)
        const empty = () =>
          spawnSync(process.execPath, [join(import.meta.dirname, "emptier.ts"), workspace], {
            uid: PERSON,
            gid: PERSON,
            encoding: "utf8"
          })
        const done = empty()
        assert.deepStrictEqual([done.status, readdirSync(workspace)], [0, []], done.stdout + done.stderr)
        assert.strictEqual(statSync(workspace).mode & 0o777, 0o700)
        mkdirSync(join(workspace, "root's\n", "own"), { recursive: true })
        writeFileSync(join(workspace, "mine"), "")
        const refused = empty()
        assert.strictEqual(refused.status, 1)
        assert.include(refused.stdout, '"root\'s\\n" could not be deleted')
        assert.deepStrictEqual(readdirSync(workspace), ["root's\n"])
        assert.deepStrictEqual(look(), before)
      })
  )

  it.live("deletes nothing outside while folders are swapped for links under it (R41)", () =>
    Effect.gen(function* () {
      const { look, outside, root, workspace } = yield* place
      const before = look()
      const swaps = join(root, "swaps")
      writeFileSync(swaps, "")
      writeFileSync(join(workspace, "mine"), "")
      const swap = `cd ${workspace}; while :; do mkdir -p a/folder; touch a/file a/folder/file; ln -s ${outside} b; mv -T a c; mv -T b a; rm -f a; rm -rf c; printf . >> ${swaps}; done`
      const swapper = yield* Effect.acquireRelease(
        Effect.sync(() => spawn("sh", ["-c", swap], { stdio: "ignore", detached: true })),
        ({ pid = 0 }) => Effect.sync(() => process.kill(-pid, "SIGKILL"))
      )
      assert.isAbove(swapper.pid ?? 0, 1)
      // Whether it ends empty is the swapper's luck. What the swapper leaves alone goes.
      for (let round = 0; round < 10 || statSync(swaps).size < SWAPS_MIN; round++) {
        yield* Effect.ignore(emptyWorkspace(workspace, []))
        yield* Effect.yieldNow
      }
      assert.isFalse(existsSync(join(workspace, "mine")))
      assert.deepStrictEqual(look(), before)
    })
  )

  it.live("refuses a folder of the system, and one that holds what is kept", () =>
    Effect.gen(function* () {
      const { outside, root } = yield* place
      const refusal = (path: string, kept: ReadonlyArray<string> = []) => Effect.flip(emptyWorkspace(path, kept))
      for (const path of ["/", "/etc", "/tmp", "/home"]) assert.strictEqual((yield* refusal(path)).reason, "refused")
      assert.include((yield* refusal(root, [outside])).message, "which choird relies on")
      assert.include((yield* refusal(join(root, "nowhere"))).message, "does not exist")
    })
  )

  it.live.skipIf(notRoot !== undefined)("refuses a folder in which something is mounted", () =>
    Effect.gen(function* () {
      const { look, outside, workspace } = yield* place
      const before = look()
      const point = join(workspace, "a folder")
      mkdirSync(point)
      spawnSync("mount", ["--bind", outside, point])
      yield* Effect.addFinalizer(() => Effect.sync(() => spawnSync("umount", [point])))
      const { reason, message } = yield* Effect.flip(emptyWorkspace(workspace, []))
      assert.deepStrictEqual([reason, message.includes("a folder")], ["refused", true])
      assert.deepStrictEqual([look(), readdirSync(workspace)], [before, ["a folder"]])
    })
  )

  it("reads mount points as proc(5) writes them", () => {
    const line = (point: string) => `36 35 98:0 /mnt1 ${point} rw,noatime master:1 - ext3 /dev/root rw`
    const info = [line("/"), line("/w"), line("/w\\040x"), line("/we"), ""].join("\n")
    assert.isUndefined(mountedBelow(info, "/w"))
    assert.isUndefined(mountedBelow(info, "/we"))
    assert.strictEqual(mountedBelow(`${info}${line("/w/a\\012b\\134")}`, "/w"), "/w/a\nb\\")
    assert.strictEqual(mountedBelow(info, "/"), "/w")
  })
})
