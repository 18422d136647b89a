/** An agent that comes by a path, a process or a setuid file of another agent of its Docker engine. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { lstatSync } from "node:fs"
import { join } from "node:path"
import { DockerEngine } from "#src/choird/runtime/docker/DockerEngine.ts"
import { asUser, hostUid, uidOf } from "../choird/runtime/docker/engineUsers.ts"
import { dockerSuite } from "../choird/runtime/dockerRig.ts"
import { testEngine } from "../support/docker.ts"

const { reason, socket } = testEngine("agentsOfOneEngine")
const { inside, started } = dockerSuite(socket)

/** A user of the namespace whom no agent is. */
const STRANGER = 4242

describe.skipIf(reason !== undefined)("agents of one engine", { timeout: 300_000 }, () => {
  it.live("have a uid each, by which neither reads, changes or signals what is the other's, wherever it sees it", () =>
    Effect.gen(function* () {
      const { root } = yield* (yield* DockerEngine).info
      const zero = root.type === "remapped" ? root.uid : 0
      const ada = yield* started("ada")
      const bob = yield* started("bob")
      const uids = [ada, bob].map(({ id }) => hostUid(socket, id.container_id))
      assert.deepStrictEqual(uids, [zero + uidOf(ada.spec), zero + uidOf(bob.spec)])
      assert.strictEqual(new Set(uids).size, 2)
      for (const [{ spec }, uid] of [
        [ada, uids[0]],
        [bob, uids[1]]
      ] as const)
        for (const path of [spec.workspace, spec.socket_dir, join(spec.socket_dir, "choird.sock")])
          assert.strictEqual(lstatSync(path).uid, uid, path)
      // As careless as a file can be.
      yield* ada.agent.sh("mkdir open; chmod 777 open; echo secret > open/file; chmod 666 open/file")
      const folders = { "/other": ada.spec.workspace, "/socks": ada.spec.socket_dir }
      const tries = [
        ["list", "ls /other"],
        ["read", "cat /other/open/file"],
        ["write", "echo x > /other/open/file"],
        ["create", "touch /other/new"],
        ["open", "chmod 777 /other"],
        ["connect", "ls /socks/choird.sock"]
      ]
      const script = tries.map(([name, command]) => `if ${command} >/dev/null 2>&1; then echo ${name}; fi`).join("\n")
      assert.strictEqual(asUser(socket, uidOf(bob.spec), folders, script), "")
      assert.strictEqual(asUser(socket, uidOf(ada.spec), folders, script), tries.map(([name]) => name).join("\n"))
      const beside = ["--pid", `container:${ada.id.container_id}`]
      const signal = "kill -0 1 2>/dev/null && echo reached; true"
      assert.strictEqual(asUser(socket, uidOf(bob.spec), {}, signal, beside), "")
      assert.strictEqual(asUser(socket, uidOf(ada.spec), {}, signal, beside), "reached")
    }).pipe(inside)
  )

  it.live("gain nothing of each other by a setuid file that one of them leaves", () =>
    Effect.gen(function* () {
      const ada = yield* started("ada")
      const bob = yield* started("bob")
      yield* ada.agent.sh("cp /bin/cat reader && chmod 4755 reader && echo own > file && chmod 600 file && chmod 755 .")
      yield* bob.agent.sh("echo secret > file && chmod 600 file && chmod 755 .")
      const folders = { "/ada": ada.spec.workspace, "/bob": bob.spec.workspace }
      assert.strictEqual(asUser(socket, STRANGER, folders, "/ada/reader /ada/file"), "own")
      assert.strictEqual(
        asUser(socket, STRANGER, folders, "/ada/reader /bob/file 2>/dev/null || echo refused"),
        "refused"
      )
    }).pipe(inside)
  )
})
