import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import { createServer } from "node:http"
import { join } from "node:path"
import { RuntimeConfig } from "#schema/Config.ts"
import { askEngine, egressCheck, engineChecks, whyNoDocker } from "#src/choirctl/doctor/dockerChecks.ts"
import { engineFacts } from "#src/shared/docker/dockerInfo.ts"
import { temporaryFolder } from "../../support/engines.ts"

const runtimeOf = Schema.decodeSync(RuntimeConfig)

const info = {
  ServerVersion: "20.10",
  Driver: "overlay2",
  DockerRootDir: "/var/lib/docker",
  CpuCfsQuota: true,
  MemoryLimit: true,
  PidsLimit: true
}
const plain = Result.succeed(engineFacts(info))
const rootless = Result.succeed(engineFacts({ ...info, SecurityOptions: ["name=rootless"] }))
const runtime = (type: "auto" | "docker", allow_unmapped_root = false) => runtimeOf({ type, allow_unmapped_root })

const stateOf = (checks: ReturnType<typeof engineChecks>) => checks.map(({ name, status }) => `${name} ${status}`)

describe("the checks of a Docker engine", () => {
  it("call for user namespaces where config.json asks for Docker, and name the setting (R38)", () => {
    const [, userns] = engineChecks(plain, runtime("docker"))
    assert.strictEqual(userns?.status, "fail")
    assert.include(userns?.fix ?? "", '"userns-remap": "default"')
    assert.deepStrictEqual(stateOf(engineChecks(plain, runtime("docker", true)))[1], "docker userns warn")
    assert.deepStrictEqual(stateOf(engineChecks(rootless, runtime("docker"))), [
      "docker ok",
      "docker userns ok",
      "docker limits ok",
      "docker uids warn"
    ])
    assert.match(whyNoDocker(plain, runtime("auto")) ?? "", /user namespaces/u)
    assert.isUndefined(whyNoDocker(plain, runtime("auto", true)))
    assert.isUndefined(whyNoDocker(rootless, runtime("docker")))
  })

  it("tell whether each agent has a uid of its own, and how it gets one", () => {
    const remapped = (ids: number) =>
      Result.succeed(
        engineFacts(
          { ...info, DockerRootDir: "/var/lib/docker/165536.165536", SecurityOptions: ["name=userns"] },
          () => ids
        )
      )
    const last = (engine: typeof plain, uid: number, allowed = false) =>
      engineChecks(engine, runtime("docker", allowed), uid).at(-1)
    assert.deepStrictEqual(last(remapped(65_536), 0), {
      name: "docker uids",
      status: "ok",
      detail: "each agent has a uid of its own on this host"
    })
    assert.strictEqual(last(remapped(65_536), 1000)?.status, "ok")
    const few = last(remapped(1000), 0)
    assert.deepStrictEqual(
      [few?.status, few?.detail],
      ["warn", "the Docker engine maps 1000 ids and agents need 60000, so all of them run as uid 165536"]
    )
    assert.match(few?.fix ?? "", /at least 60000 ids in \/etc\/subuid and \/etc\/subgid/u)
    assert.match(last(remapped(65_536), 165_536)?.detail ?? "", /choird's own user/u)
    assert.match(last(rootless, 0)?.detail ?? "", /rootless/u)
    assert.match(last(plain, 1000, true)?.detail ?? "", /all agents run as choird's own user/u)
    assert.strictEqual(last(plain, 0, true)?.status, "ok")
    // No agent runs there.
    assert.strictEqual(last(plain, 1000)?.name, "docker limits")
  })

  it("tell which limits an engine does not enforce", () => {
    const weak = Result.succeed(engineFacts({ ...info, PidsLimit: false, SecurityOptions: ["name=rootless"] }))
    const limits = engineChecks(weak, runtime("docker"))[2]
    assert.deepStrictEqual([limits?.status, limits?.detail], ["warn", "not enforced: pids"])
  })

  it.live("say where they looked for an engine, and miss it only where config.json asks for one", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const engine = yield* askEngine(join(folder, "none.sock"))
      assert.deepStrictEqual(stateOf(engineChecks(engine, runtime("docker"))), ["docker fail"])
      assert.deepStrictEqual(stateOf(engineChecks(engine, runtime("auto"))), ["docker skip"])
      assert.include(whyNoDocker(engine, runtime("auto")) ?? "", join(folder, "none.sock"))
    })
  )

  it.live("take an engine's own words, and no other server's", () =>
    Effect.gen(function* () {
      const socket = join(yield* temporaryFolder, "engine.sock")
      let body: unknown = info
      const server = createServer((_, response) => response.end(JSON.stringify(body)))
      yield* Effect.callback<void>((resume) => void server.listen(socket, () => resume(Effect.void)))
      yield* Effect.addFinalizer(() => Effect.sync(() => server.close()))
      const engine = yield* askEngine(socket)
      assert.strictEqual(Result.isSuccess(engine) ? engine.success.version : "", "20.10")
      body = { hello: true }
      const other = yield* askEngine(socket)
      assert.isTrue(Result.isFailure(other) && other.failure.problem.includes("no engine answers"))
    })
  )

  it.live("print the rules for a choird that is not root", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const runtime = runtimeOf({ type: "docker" })
      assert.strictEqual(egressCheck(home, runtime, true).status, "ok")
      const check = egressCheck(home, runtime, false)
      assert.strictEqual(check.status, "warn")
      assert.match(check.fix ?? "", /iptables-restore --noflush[^]*FORWARD -i choir-[0-9a-f]{8} -j/u)
      assert.strictEqual(egressCheck(home, runtimeOf({ network: "open" }), false).status, "ok")
      const listed = runtimeOf({ network: "allowlist", allow: ["example.org"] })
      assert.deepStrictEqual(
        [egressCheck(home, listed, true).status, egressCheck(home, listed, false).status],
        ["ok", "fail"]
      )
    })
  )
})
