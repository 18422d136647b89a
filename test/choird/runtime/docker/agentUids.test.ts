/** The uids of the agents of an engine, over all that a home goes through (D11). What they keep apart: test/adversary/agentsOfOneEngine.test.ts. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { spawnSync } from "node:child_process"
import { chmodSync, chownSync, existsSync, lstatSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { DockerEngine } from "#src/choird/runtime/docker/DockerEngine.ts"
import { AGENT_UID_FIRST } from "#src/shared/docker/agentUids.ts"
import { testEngine } from "../../../support/docker.ts"
import { ensureDebianPackages } from "../../../support/packages.ts"
import { dockerSuite } from "../dockerRig.ts"
import { asUser, hostUid, uidOf } from "./engineUsers.ts"

const { reason, socket } = testEngine("agentUids")
const { containers, home, inside, installation, rig, runtimeWith, started } = dockerSuite(socket)

/** A choird that is not root. */
const PERSON = 12_345

const mappedRoot = Effect.gen(function* () {
  const { root } = yield* (yield* DockerEngine).info
  return root.type === "remapped" ? root.uid : 0
})

const owner = (path: string) => lstatSync(path).uid

describe.skipIf(reason !== undefined)("the agents of an engine", { timeout: 300_000 }, () => {
  it.live("keep their uid and their files over restarts of theirs and of choird", () =>
    Effect.gen(function* () {
      const made = yield* rig("ada")
      const run = (command: string) =>
        Effect.gen(function* () {
          const runtime = yield* ContainerRuntime
          const { id } = yield* runtime.start(made.spec)
          const { sh } = yield* made.connected
          return [id.type === "docker" ? hostUid(socket, id.container_id) : 0, yield* sh(command)]
        }).pipe(Effect.scoped, Effect.provide(Layer.fresh(runtimeWith())))
      const zero = yield* Effect.provide(mappedRoot, DockerEngine.layer({ docker_socket: socket }))
      const uid = zero + uidOf(made.spec)
      assert.strictEqual((yield* run("umask 077; mkdir kept; echo mine > kept/file"))[0], uid)
      assert.deepStrictEqual(yield* run("cat kept/file && echo more >> kept/file"), [uid, "mine"])
    }).pipe(Effect.scoped)
  )

  it.live("have a name, which nothing inside can change, and which is gone from the host when they end", () =>
    Effect.gen(function* () {
      const { connected, spec } = yield* rig("ada")
      const runtime = yield* ContainerRuntime
      const ids = `${uidOf(spec)}(choir)`
      const names = ["passwd", "group"].map((name) => join(spec.socket_dir, name))
      yield* Effect.gen(function* () {
        yield* runtime.start(spec)
        const agent = yield* connected
        assert.strictEqual(yield* agent.sh("id"), `uid=${ids} gid=${ids} groups=${ids}`)
        assert.strictEqual(
          yield* agent.sh("getent passwd choir | cut -d: -f6,7; id -un 0; id -un 65534"),
          "/tmp:/bin/sh\nroot\nnobody"
        )
        assert.match(yield* agent.sh("echo x >> /etc/passwd"), /Read-only|denied|cannot create/u)
        assert.deepStrictEqual(names.map(existsSync), [true, true])
      }).pipe(Effect.scoped)
      assert.deepStrictEqual(names.map(existsSync), [false, false])
    }).pipe(inside)
  )

  it.live(
    "own a workspace of the time when they shared a uid, and one that another agent had, from their next start on",
    () =>
      Effect.gen(function* () {
        const zero = yield* mappedRoot
        const ada = yield* rig("ada")
        const { workspace } = ada.spec
        mkdirSync(join(workspace, "shut"), { mode: 0o700 })
        writeFileSync(join(workspace, "shut", "file"), "from before\n", { mode: 0o600 })
        writeFileSync(join(workspace, "person's"), "")
        for (const path of ["", "shut", "shut/file"]) chownSync(join(workspace, path), zero, zero)
        chownSync(join(workspace, "person's"), PERSON, PERSON)
        chmodSync(workspace, 0o755)
        const runtime = yield* ContainerRuntime
        const look = (made: typeof ada) =>
          Effect.gen(function* () {
            yield* runtime.start({ ...made.spec, workspace })
            return yield* (yield* made.connected).sh("cat shut/file && echo more >> shut/file; touch new")
          }).pipe(Effect.scoped)
        assert.strictEqual(yield* look(ada), "from before")
        const paths = ["", "shut", "shut/file", "new"].map((path) => join(workspace, path))
        for (const path of paths) assert.strictEqual(owner(path), zero + uidOf(ada.spec), path)
        assert.strictEqual(lstatSync(workspace).mode & 0o777, 0o750)
        const bob = yield* rig("bob")
        assert.strictEqual(yield* look(bob), "from before\nmore")
        for (const path of paths) assert.strictEqual(owner(path), zero + uidOf(bob.spec), path)
        assert.strictEqual(owner(join(workspace, "person's")), PERSON)
      }).pipe(inside)
  )

  /** An engine that maps too few ids for agents to have one each. */
  const Few = Layer.effect(
    DockerEngine,
    Effect.map(DockerEngine, (engine) => ({
      ...engine,
      info: Effect.map(engine.info, (facts) => ({
        ...facts,
        root: facts.root.type === "remapped" ? { ...facts.root, ids: 1000 } : facts.root
      }))
    }))
  ).pipe(Layer.provide(DockerEngine.layer({ docker_socket: socket })))
  it.live("share a uid where the engine maps too few ids, and `status` says so and what helps", () =>
    inside(
      Effect.gen(function* () {
        const zero = yield* mappedRoot
        const ada = yield* started("ada")
        const bob = yield* started("bob")
        assert.deepStrictEqual(
          [ada, bob].map(({ id }) => hostUid(socket, id.container_id)),
          [zero, zero]
        )
        assert.strictEqual(yield* ada.agent.sh("id -un; touch made"), "root")
        const { isolation, warnings } = yield* ada.runtime.status
        assert.include(isolation, "agents share a uid")
        assert.match(warnings.join(), /maps 1000 ids and agents need 60000.*\/etc\/subuid/u)
      }),
      runtimeWith({}, Few)
    )
  )

  it.live("whose container an earlier choird started reach their socket as the user that they are there", () =>
    inside(
      Effect.gen(function* () {
        const zero = yield* mappedRoot
        const { container, spec } = yield* started("ada")
        const paths = [spec.socket_dir, join(spec.socket_dir, "choird.sock")]
        // As a choird leaves them that opens the socket again.
        for (const path of paths) chownSync(path, 0, 0)
        const adopt = Effect.flatMap(ContainerRuntime, (runtime) => runtime.adopt(container.id, spec.socket_dir))
        assert.isTrue(yield* Effect.provide(adopt, Layer.fresh(runtimeWith())))
        assert.deepStrictEqual(paths.map(owner), [zero, zero])
        yield* container.kill
        assert.isFalse(yield* adopt)
      }),
      runtimeWith({}, Few)
    )
  )

  it.live("have a uid each by `status`, without a warning", () =>
    Effect.gen(function* () {
      const { isolation, warnings } = yield* (yield* ContainerRuntime).status
      assert.include(isolation, "each agent has a uid of its own")
      assert.notMatch(warnings.join(), /uid/u)
    }).pipe(inside)
  )

  const withoutAcl = ensureDebianPackages(["acl"], "agents of a choird that is not root")
  it.live.skipIf(withoutAcl !== undefined)(
    "of a choird that is not root work in its folders by access lists, and are out when another one is in",
    () =>
      Effect.gen(function* () {
        // Its image is the one that choird's own containers run.
        yield* rig("ada", [`LABEL choir.home=${installation.id}`])
        const zero = yield* mappedRoot
        const root = yield* Effect.acquireRelease(
          Effect.sync(() => mkdtempSync("/tmp/choir-opened-")),
          (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
        )
        chmodSync(root, 0o755)
        const workspace = join(root, "workspace")
        mkdirSync(join(workspace, "shut"), { recursive: true })
        for (const path of ["own", "shut/file"]) writeFileSync(join(workspace, path), "from before\n", { mode: 0o600 })
        for (const path of ["", "own"]) chownSync(join(workspace, path), PERSON, PERSON)
        // What an agent of the shared uid made, and kept for itself.
        for (const path of ["shut", "shut/file"]) chownSync(join(workspace, path), zero, zero)
        chmodSync(join(workspace, "shut"), 0o700)
        const open = (number: number) => {
          const opener = [join(import.meta.dirname, "opener.ts"), workspace, String(number), home, socket]
          const user = { uid: PERSON, gid: lstatSync(socket).gid, encoding: "utf8" } as const
          const done = spawnSync(process.execPath, opener, user)
          assert.strictEqual(done.status, 0, done.stdout + done.stderr)
        }
        const [ADA, BOB] = [3, 4]
        const work = (number: number) =>
          asUser(
            socket,
            AGENT_UID_FIRST + number,
            { "/workspace": workspace },
            "cd /workspace 2>/dev/null && cat own shut/file && umask 077 && mkdir -p made && echo more >> shut/file && touch made/file; true"
          )
        assert.strictEqual(work(ADA), "")
        open(ADA)
        assert.deepStrictEqual([work(ADA), work(BOB)], ["from before\nfrom before", ""])
        open(ADA)
        open(BOB)
        assert.deepStrictEqual([work(BOB), work(ADA)], ["from before\nfrom before\nmore", ""])
        for (const path of ["shut", "shut/file", "made/file"])
          assert.strictEqual(owner(join(workspace, path)), zero + AGENT_UID_FIRST + BOB, path)
        for (const path of ["", "own"]) assert.strictEqual(owner(join(workspace, path)), PERSON, path)
        // A choird that is not root still empties it, by the lists.
        const emptier = [join(import.meta.dirname, "../emptier.ts"), workspace, home, socket]
        const emptied = spawnSync(process.execPath, emptier, {
          uid: PERSON,
          gid: lstatSync(socket).gid,
          encoding: "utf8"
        })
        assert.strictEqual(emptied.status, 0, emptied.stdout + emptied.stderr)
        assert.deepStrictEqual(
          [spawnSync("ls", ["-A", workspace], { encoding: "utf8" }).stdout, containers()],
          ["", []]
        )
      }).pipe(inside)
  )
})
