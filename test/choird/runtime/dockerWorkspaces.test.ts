import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync, spawnSync } from "node:child_process"
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { ContainerWatch } from "#src/choird/runtime/docker/ContainerWatch.ts"
import { DockerEngine } from "#src/choird/runtime/docker/DockerEngine.ts"
import { emptyInContainer, EMPTYING } from "#src/choird/runtime/docker/EmptyingContainer.ts"
import { workProfile } from "#src/choird/runtime/docker/WorkspaceContainer.ts"
import { testEngine } from "../../support/docker.ts"
import { docker } from "../../support/dockerImage.ts"
import { ensureDebianPackages } from "../../support/packages.ts"
import { makeOutside, setLayers, setTraps } from "../../support/traps.ts"
import { dockerSuite } from "./dockerRig.ts"

const { reason, socket } = testEngine("dockerWorkspaces")
const { containers, home, inside, installation, rig } = dockerSuite(socket)

/** A choird that is not root. */
const PERSON = 12_345

/** An image that choird's builder could have made: it says whose it is. */
const LABELS = [`LABEL choir.home=${installation.id}`]

/** The host's uid of root in a container of the tests' engine. */
const mappedRoot = Effect.gen(function* () {
  const { root } = yield* (yield* DockerEngine).info
  return root.type === "remapped" ? root.uid : 0
})

const place = Effect.acquireRelease(
  Effect.sync(() => {
    const root = mkdtempSync("/tmp/choir-reset-")
    chmodSync(root, 0o755)
    const [workspace, outside] = [join(root, "workspace"), join(root, "outside")]
    mkdirSync(workspace)
    return { root, workspace, outside, look: makeOutside(outside) }
  }),
  ({ root }) => Effect.sync(() => rmSync(root, { recursive: true, force: true }))
)

describe.skipIf(reason !== undefined)("workspaces of containers", { timeout: 300_000 }, () => {
  it.live("a container deletes what mapped uids own, with every trap, and nothing of this host (D43, R41)", () =>
    Effect.gen(function* () {
      yield* rig("dev", LABELS)
      const uid = yield* mappedRoot
      assert.isAbove(uid, 0)
      const { look, outside, workspace } = yield* place
      const before = look()
      setTraps(workspace, outside, uid)
      // A folder of another user of the namespace, which nobody else may enter.
      setLayers(workspace, [uid + 33, uid, uid + 1000])
      writeFileSync(join(workspace, "root's"), "")
      mkdirSync(join(workspace, "shut"))
      writeFileSync(join(workspace, "shut", "file"), "")
      chownSync(workspace, uid, uid)
      yield* emptyInContainer(installation, workspace).pipe(Effect.provide(ContainerWatch.layer(installation)))
      // Not in the namespace, and in a folder that is not: root of the container may not.
      assert.deepStrictEqual(readdirSync(workspace), ["shut"])
      assert.deepStrictEqual(look(), before)
      assert.deepStrictEqual(containers(), [])
    }).pipe(inside)
  )

  it.live("a reset empties folders of choird within folders of agents, and those within choird's (R41)", () =>
    Effect.gen(function* () {
      yield* rig("dev", LABELS)
      const uid = yield* mappedRoot
      const { look, outside, workspace } = yield* place
      const before = look()
      setLayers(workspace, [uid, 0, uid, 0, 12_345, uid])
      mkdirSync(join(workspace, "folder"))
      const runtime = yield* ContainerRuntime
      yield* runtime.emptyWorkspace(workspace, [outside])
      assert.deepStrictEqual(readdirSync(workspace), [])
      assert.deepStrictEqual([look(), containers()], [before, []])
    }).pipe(inside)
  )

  const withoutAcl = ensureDebianPackages(["acl"], "a choird that is not root")
  it.live.skipIf(withoutAcl !== undefined)(
    "a choird that is not root empties what it could not delete itself (D43, R41)",
    () =>
      Effect.gen(function* () {
        yield* rig("dev", LABELS)
        const uid = yield* mappedRoot
        const { look, outside, workspace } = yield* place
        const before = look()
        setTraps(workspace, outside, uid)
        setLayers(workspace, [uid, uid + 33])
        writeFileSync(join(workspace, "own"), "")
        chownSync(join(workspace, "own"), PERSON, PERSON)
        // Its agents come in by an access list, as when choird starts them.
        chownSync(workspace, PERSON, PERSON)
        execFileSync("setfacl", ["-m", `u:${uid}:rwx`, workspace])
        const user = { uid: PERSON, gid: statSync(socket).gid, encoding: "utf8" } as const
        const alone = spawnSync("find", ["-P", workspace, "-mindepth", "1", "-delete"], user)
        assert.deepStrictEqual([alone.status, readdirSync(workspace).includes("layer")], [1, true])
        const emptier = [join(import.meta.dirname, "emptier.ts"), workspace, home, socket]
        const done = spawnSync(process.execPath, emptier, user)
        assert.deepStrictEqual([done.status, readdirSync(workspace)], [0, []], done.stdout + done.stderr)
        assert.deepStrictEqual([look(), containers()], [before, []])
      }).pipe(inside)
  )

  it.live("a container of an earlier reset gives up its name, and an engine without images is not asked for one", () =>
    Effect.gen(function* () {
      const { workspace } = yield* place
      const runtime = yield* ContainerRuntime
      writeFileSync(join(workspace, "file"), "")
      yield* runtime.emptyWorkspace(workspace, [])
      assert.deepStrictEqual(readdirSync(workspace), [])
      yield* rig("dev", LABELS)
      const { name } = workProfile(installation, "", workspace, EMPTYING)
      docker(socket, "run", "--detach", "--name", name ?? "", "debian:bookworm-slim", "sleep", "1000")
      writeFileSync(join(workspace, "file"), "")
      yield* runtime.emptyWorkspace(workspace, [])
      assert.deepStrictEqual([readdirSync(workspace), docker(socket, "ps", "-aqf", `name=${name}`)], [[], ""])
    }).pipe(inside)
  )
})
