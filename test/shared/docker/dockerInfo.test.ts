import { assert, describe, it } from "@effect/vitest"
import { engineFacts } from "#src/shared/docker/dockerInfo.ts"
import { dockerSockets } from "#src/shared/docker/dockerSocket.ts"

const info = { ServerVersion: "20.10.24", Driver: "overlay2", DockerRootDir: "/var/lib/docker" }

describe("engineFacts", () => {
  it("tells to whom the engine maps root of a container (R38)", () => {
    const rootOf = (SecurityOptions: ReadonlyArray<string> | null, DockerRootDir = "/var/lib/docker") =>
      engineFacts({ ...info, DockerRootDir, SecurityOptions }, (uid, gid) => gid - uid).root
    assert.deepStrictEqual(rootOf(null), { type: "none" })
    assert.deepStrictEqual(rootOf(["name=seccomp,profile=default"]), { type: "none" })
    assert.deepStrictEqual(rootOf(["name=seccomp,profile=default", "name=rootless"]), { type: "rootless" })
    const remapped = { type: "remapped", uid: 165_536, gid: 165_537, ids: 1 } as const
    assert.deepStrictEqual(rootOf(["name=userns"], "/var/lib/docker/165536.165537"), remapped)
    // A folder of such a name proves nothing, and an engine whose mapping cannot be told is not trusted to have one.
    assert.deepStrictEqual(rootOf(null, "/var/lib/docker/165536.165537"), { type: "none" })
    assert.deepStrictEqual(rootOf(["name=userns"]), { type: "none" })
  })

  it("takes what an engine does not say for what it cannot do", () => {
    const facts = engineFacts(info)
    assert.deepStrictEqual(facts.limits, { cpus: false, memory_mb: false, pids: false })
    assert.isFalse(facts.seccomp || facts.live_restore)
  })
})

describe("dockerSockets", () => {
  it("looks at what config.json names alone, else at DOCKER_HOST, else at the usual places", () => {
    const env = { DOCKER_HOST: "unix:///run/a.sock", XDG_RUNTIME_DIR: "/run/user/1" }
    assert.deepStrictEqual(dockerSockets("/run/b.sock", env), ["/run/b.sock"])
    assert.deepStrictEqual(dockerSockets(undefined, env), ["/run/a.sock"])
    assert.deepStrictEqual(dockerSockets(undefined, { ...env, DOCKER_HOST: "tcp://other:2375" }), [
      "/var/run/docker.sock",
      "/run/user/1/docker.sock"
    ])
    assert.deepStrictEqual(dockerSockets(undefined, {}), ["/var/run/docker.sock"])
  })
})
