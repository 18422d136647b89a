import { readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Check } from "#src/choirctl/doctor/hostChecks.ts"
import { choirctl, document, spawnChoirctl } from "../../support/choirctl.ts"
import { testEngine } from "../../support/docker.ts"
import { docker } from "../../support/dockerImage.ts"
import { temporaryFolder } from "../../support/engines.ts"

const PLAIN = {
  ServerVersion: "20.10.24",
  Driver: "overlay2",
  DockerRootDir: "/var/lib/docker",
  SecurityOptions: ["name=seccomp,profile=default"],
  CpuCfsQuota: true,
  MemoryLimit: true,
  PidsLimit: false
}

/** Where an engine answers that says this of itself. */
const engineThat = Effect.fnUntraced(function* (info: object) {
  const socket = join(yield* temporaryFolder, "engine.sock")
  const server = createServer((_, response) => response.end(JSON.stringify(info)))
  yield* Effect.callback<void>((resume) => void server.listen(socket, () => resume(Effect.void)))
  yield* Effect.addFinalizer(() => Effect.sync(() => server.close()))
  return socket
})

const runtimeOf = (home: string) => JSON.parse(readFileSync(join(home, "config.json"), "utf8")).runtime

describe("choirctl init beside a Docker engine without user namespaces (R38)", () => {
  it.live("asks at a terminal, and writes what is answered", () =>
    Effect.gen(function* () {
      const env = { DOCKER_HOST: `unix://${yield* engineThat(PLAIN)}`, TERM: "xterm" }
      for (const [answer, runtime] of [
        ["y", { type: "auto", allow_unmapped_root: true }],
        ["n", { type: "auto" }]
      ] as const) {
        const home = join(yield* temporaryFolder, "home")
        const flags = ["--model-provider", "offline", "--runtime", "auto"]
        const ran = yield* spawnChoirctl(["--home", home, "init", ...flags], {
          env,
          typing: [
            { after: "Let agents run in this engine anyway", text: `${answer}\r` },
            { after: "Bot token from @BotFather", text: "\r" }
          ]
        })
        assert.strictEqual(ran.code, 0, ran.out)
        assert.include(ran.out, "root of a container would be root of this host")
        assert.include(ran.out, '"userns-remap": "default"')
        assert.deepStrictEqual(runtimeOf(home), runtime)
      }
    })
  )

  it.live("does not allow it unasked, says so, and takes a flag; says nothing beside an engine that remaps", () =>
    Effect.gen(function* () {
      const env = { DOCKER_HOST: `unix://${yield* engineThat(PLAIN)}` }
      const home = join(yield* temporaryFolder, "home")
      const ran = yield* spawnChoirctl(["--home", home, "init", "--runtime", "auto"], { env })
      assert.deepStrictEqual([ran.code, runtimeOf(home)], [0, { type: "auto" }])
      assert.match(ran.err, /warning: the Docker engine has no user namespaces[^]*--allow-unmapped-root/u)
      const allowed = join(yield* temporaryFolder, "home")
      yield* choirctl(allowed, ["init", "--runtime", "auto", "--allow-unmapped-root"])
      assert.deepStrictEqual(runtimeOf(allowed), { type: "auto", allow_unmapped_root: true })
      const rootless = { DOCKER_HOST: `unix://${yield* engineThat({ ...PLAIN, SecurityOptions: ["name=rootless"] })}` }
      const quiet = join(yield* temporaryFolder, "home")
      const silent = yield* spawnChoirctl(["--home", quiet, "init", "--runtime", "auto"], { env: rootless })
      assert.notInclude(silent.err, "warning")
    })
  )
})

/** What doctor says of each thing, with this runtime in config.json. */
const examined = Effect.fnUntraced(function* (runtime: object) {
  const home = join(yield* temporaryFolder, "home")
  yield* choirctl(home, ["init"])
  const path = join(home, "config.json")
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf8")), runtime }))
  const { checks } = document(yield* choirctl(home, ["doctor", "--json"])) as { readonly checks: ReadonlyArray<Check> }
  return new Map(
    checks.map(({ detail, fix, name, status }) => [
      name,
      `${status}: ${detail}${fix === undefined ? "" : ` -> ${fix}`}`
    ])
  )
})

describe("choirctl doctor on an engine", () => {
  it.live("names for each lack the command that fixes it", () =>
    Effect.gen(function* () {
      const docker_socket = yield* engineThat(PLAIN)
      const found = yield* examined({ type: "docker", docker_socket })
      assert.strictEqual(found.get("docker"), "ok: version 20.10.24, storage overlay2")
      assert.match(
        found.get("docker userns") ?? "",
        /^fail: .* -> add "userns-remap": "default" to .*daemon\.json and run: systemctl restart docker/u
      )
      assert.match(found.get("docker limits") ?? "", /^warn: not enforced: pids -> boot with .*pids/u)
      assert.match(found.get("runtime") ?? "", /^fail: .*user namespaces/u)
      const allowed = yield* examined({ type: "docker", docker_socket, allow_unmapped_root: true })
      assert.match(allowed.get("docker userns") ?? "", /^warn: .*userns-remap/u)
      assert.strictEqual(allowed.get("runtime"), "ok: docker")
      const none = yield* examined({ type: "docker", docker_socket: "/nonexistent/docker.sock" })
      assert.match(
        none.get("docker") ?? "",
        /^fail: there is no Docker engine at .* -> install one, in Debian: apt-get install docker\.io$/u
      )
    })
  )

  const { reason, socket } = testEngine("choirctl doctor on an engine")
  it.live.skipIf(reason !== undefined)("says of a real one what it says of itself", () =>
    Effect.gen(function* () {
      const found = yield* examined({ type: "docker", docker_socket: socket })
      const said = (format: string) => docker(socket, "info", "--format", format)
      assert.strictEqual(
        found.get("docker"),
        `ok: version ${said("{{.ServerVersion}}")}, storage ${said("{{.Driver}}")}`
      )
      assert.strictEqual(found.get("docker userns"), "ok: root of a container is an unprivileged user here")
      const lacking = ["CPUCfsQuota", "MemoryLimit", "PidsLimit"].filter((name) => said(`{{.${name}}}`) !== "true")
      assert.strictEqual(
        found.get("docker limits")?.startsWith("ok: processors, memory and processes"),
        lacking.length === 0
      )
      assert.strictEqual(found.get("docker network"), "ok: choird blocks agents from this host and its networks")
      assert.strictEqual(found.get("docker uids"), "ok: each agent has a uid of its own on this host")
      assert.strictEqual(found.get("runtime"), "ok: docker")
      assert.match(found.get("git") ?? "", /^ok: git version \d/u)
    })
  )
})
