import { execFileSync } from "node:child_process"
import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { GitIdentity } from "#schema/GitIdentity.ts"
import { ResourceName } from "#schema/Ids.ts"
import { testEngine } from "../support/docker.ts"
import { putDatabase, temporaryFolder } from "../support/engines.ts"
import { describeInstallations } from "../support/everyInstallation.ts"
import { makeRemoteRepo, newestCommit, startGitHttps, startSshd } from "../support/gitServers.ts"
import { type InstallationOptions, makeInstallation } from "../support/installation.ts"
import { ensureDebianPackages } from "../support/packages.ts"
import { lanAddress } from "../support/reachable.ts"
import { makeProvider, offlineModel } from "../support/testing/Provider.ts"

const CREDENTIALS = `printf "protocol=https\\nhost=git.example.org\\npath=x\\n" | git credential fill`

/** Lets agents reach their model and these places, and nothing else (D22). */
const allowOnly = (home: string, places: ReadonlyArray<string>) => {
  const path = join(home, "config.json")
  const config = JSON.parse(readFileSync(path, "utf8"))
  const allow = [...places, new URL(config.models.test.endpoint).host]
  writeFileSync(path, JSON.stringify({ ...config, runtime: { ...config.runtime, network: "allowlist", allow } }))
}

/** An agent that leases this identity, with its secret; `run` is one command of the model. */
const start = Effect.fnUntraced(function* (
  where: Partial<InstallationOptions>,
  identity: Pick<GitIdentity, "remotes" | "known_hosts">,
  secret: string,
  listed?: ReadonlyArray<string>
) {
  const provider = yield* makeProvider
  yield* provider.otherwise((request) => offlineModel(request, 0))
  const choir = yield* makeInstallation({
    ...where,
    endpoint: provider.endpoint,
    secrets: { ...where.secrets, git: secret },
    config: { git_identities: { ada: { name: "Ada", email: "ada@example.org", secret: "git", ...identity } } }
  })
  if (listed !== undefined) allowOnly(choir.home, listed)
  yield* choir.start
  yield* choir.build
  yield* choir.api.agents.start({ params: choir.params, payload: { git_identity: ResourceName.make("ada") } })
  const run = Effect.fnUntraced(function* (script: string) {
    const { inbox_id } = yield* choir.send("git-1", `run ${script}`)
    yield* choir.settled(inbox_id)
    const { session_id } = yield* choir.api.agents.status({ params: choir.params })
    const history = yield* choir.events(session_id!)
    const results = history.flatMap(({ event }) => (event.event_type === "ToolResultCommitted" ? [event.payload] : []))
    return { history, result: results.at(-1), asked: yield* provider.requests.all }
  })
  return { ...choir, run }
})

describeInstallations("an agent with a git identity", (place) => {
  it.live("commits under its name, may use its token in a command, and shows it nowhere (R32)", () =>
    Effect.gen(function* () {
      const choir = yield* start(yield* place, { remotes: ["https://git.example.org/"] }, "canary-token")
      const { asked, history, result } = yield* choir.run(
        `git init -q r && git -C r commit -q --allow-empty -m made && ${CREDENTIALS}`
      )
      assert.strictEqual(result?.status, "success", JSON.stringify(result))
      assert.include(JSON.stringify(result), "password=<redacted>")
      const made = ["-C", join(choir.workspace, "r"), "-c", "safe.directory=*", "log", "-1", "--format=%an <%ae>: %s"]
      assert.strictEqual(execFileSync("git", made).toString(), "Ada <ada@example.org>: made\n")
      assert.notInclude(JSON.stringify([history, asked]), "canary")
      for (const name of readdirSync(join(choir.home, "logs"), { recursive: true, encoding: "utf8" }))
        if (name.endsWith(".log")) assert.notInclude(readFileSync(join(choir.home, "logs", name), "utf8"), "canary")
    }).pipe(Effect.scoped)
  )
})

const engine = testEngine("a git identity in a container")
const leftOut = engine.reason ?? ensureDebianPackages(["openssh-server"], "a git identity in a container")

describe.skipIf(leftOut !== undefined)("an agent with a git identity, in a container", () => {
  const where = { runtime: { docker_socket: engine.socket }, database: putDatabase }
  const work = (url: string) =>
    `git clone -q ${url} app && cd app && echo more >> README && git commit -qam second && git push -q origin main`

  it.live(
    "clones, commits and pushes over https where it may reach its model and that host alone (D22); a reset leaves nothing of it (D43, R41)",
    () =>
      Effect.gen(function* () {
        const root = yield* temporaryFolder
        const bare = makeRemoteRepo(root, "app.git")
        const server = yield* startGitHttps({ root, user: "bot", password: "canary-token", address: lanAddress() })
        const { api, params, run, workspace } = yield* start(
          where,
          { remotes: [`https://${server.host}/`] },
          "bot:canary-token",
          [server.host]
        )
        cpSync(server.cert, join(workspace, "server.pem"))
        const { result } = yield* run(
          `export GIT_SSL_CAINFO=/workspace/server.pem; git config credential.helper | grep -q "^!exec /choir/bin/git-cred-helper /tmp/" && ${work(`https://${server.host}/app.git`)}`
        )
        assert.strictEqual(result?.status, "success", JSON.stringify(result))
        assert.strictEqual(newestCommit(bare), "Ada <ada@example.org> / Ada <ada@example.org>: second")
        assert.deepStrictEqual((yield* api.system.status()).warnings, [])
        const name = ResourceName.make("main")
        const held = [
          { kind: "workspace", name: "main" },
          { kind: "git_identity", name: "ada" }
        ]
        assert.includeDeepMembers([...(yield* api.agents.status({ params })).leases], held)
        assert.include(readdirSync(workspace), "app")
        const { stopped } = yield* api.workspaces.reset({ params: { name } })
        assert.strictEqual(stopped, params.id)
        assert.deepStrictEqual(readdirSync(workspace), [])
        assert.deepStrictEqual((yield* api.agents.status({ params })).leases, [])
      }).pipe(Effect.scoped)
  )

  it.live("clones, commits and pushes over ssh with a key that is in no file", () =>
    Effect.gen(function* () {
      const bare = makeRemoteRepo(yield* temporaryFolder, "app.git")
      const { key, known_hosts, port, said } = yield* startSshd(lanAddress())
      const url = `ssh://root@${lanAddress()}:${port}`
      const { run } = yield* start(where, { remotes: [url], known_hosts }, key)
      const { result } = yield* run(work(`${url}${bare}`))
      assert.strictEqual(result?.status, "success", `${JSON.stringify(result)}\n${said()}`)
      assert.strictEqual(newestCommit(bare), "Ada <ada@example.org> / Ada <ada@example.org>: second")
    }).pipe(Effect.scoped)
  )
})
