/** Which secret goes to which repository (D14). */
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted, Result, Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { AgentId, ResourceName } from "#schema/Ids.ts"
import { CommitId } from "#schema/Image.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { loadHome } from "#src/choird/reconfiguration/loadHome.ts"
import { accessBy, layerRepoAccess, RepoAccess } from "#src/choird/repos/RepoAccess.ts"
import { Repos } from "#src/choird/repos/Repos.ts"
import { checkSource } from "#src/choird/repos/RepoSource.ts"
import { FetchFailed } from "#src/choird/repos/gitCalls.ts"
import { withVariable } from "../../support/environment.ts"
import { makeGitRepo, temporaryFolder } from "../../support/gitRepo.ts"
import { startGitHttps } from "../../support/gitServers.ts"
import { GLOBAL_FILES, reposLayer } from "../../support/images.ts"
import { makeHome } from "../../support/stores.ts"

const KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\ncanary\n-----END OPENSSH PRIVATE KEY-----\n"
const ADA = AgentId.make("ada")

const identity = (secret: string, ...remotes: ReadonlyArray<string>) => ({
  name: "Ada",
  email: "ada@example.org",
  secret,
  remotes,
  known_hosts: ["git.example.org ssh-ed25519 AAAA"]
})
const CONFIG = {
  global_repo: { url: "/srv/global" },
  models: { small: { provider: "test", model: "small", endpoint: "https://llm.example.org/v1" } },
  workspaces: { main: { path: "/srv/main" } },
  gateways: { terminal: { type: "console" } },
  dms: { me: { gateway: "terminal", user_id: "local", admin: true } },
  git_identities: {
    web: identity("token", "https://git.example.org/team"),
    pair: identity("pair", "https://git.example.org/team"),
    shell: identity("key", "ssh://git.example.org", "https://git.example.org/team"),
    empty: identity("none", "https://git.example.org/team")
  },
  agents: {
    ada: {
      repo: { url: "https://git.example.org/team/ada.git" },
      defaults: { workspace: "main", llm: "small", dm: "me", git_identity: "web" }
    }
  }
} as const
const SECRETS = { token: "canary", pair: "ada:canary:x", key: KEY, none: "" }

const by = accessBy(
  Schema.decodeUnknownSync(Config)(CONFIG),
  Object.fromEntries(Object.entries(SECRETS).map(([name, value]) => [name, Redacted.make(value)]))
)
const ask = (url: string, name?: string, agent = ADA) => {
  const source = Result.getOrThrow(checkSource({ url, ref: "main" }))
  const { credential } = by(agent, source, name === undefined ? undefined : ResourceName.make(name))
  if (credential === undefined) return undefined
  return credential.type === "key"
    ? ["key", Redacted.value(credential.key), credential.known_hosts]
    : [credential.host, credential.user, Redacted.value(credential.password)]
}

describe("accessBy", () => {
  it("takes the agent's default identity, or the one that is named, to its remotes", () => {
    const url = "https://git.example.org/team/ada.git"
    assert.deepStrictEqual(ask(url), ["git.example.org", "x-access-token", "canary"])
    assert.deepStrictEqual(ask(url, "pair"), ["git.example.org", "ada", "canary:x"])
    assert.deepStrictEqual(ask("git@git.example.org:ada.git", "shell"), ["key", KEY, identity("key").known_hosts])
  })

  it("has nothing for other places, other kinds of secrets and other agents", () => {
    for (const [url, name] of [
      ["https://git.example.org/other/ada.git", "web"],
      ["https://git.example.org:8443/team/ada.git", "web"],
      ["https://evil.example.org/team/ada.git", "web"],
      ["ssh://git.example.org/team/ada.git", "web"],
      ["ssh://git.example.org:2222/team/ada.git", "shell"],
      ["https://git.example.org/team/ada.git", "shell"],
      ["https://git.example.org/team/ada.git", "empty"],
      ["https://git.example.org/team/ada.git", "constructor"],
      ["/srv/team/ada.git", "web"]
    ] as const)
      assert.isUndefined(ask(url, name), `${url} as ${name}`)
    assert.isUndefined(ask("https://git.example.org/team/ada.git", undefined, AgentId.make("eve")))
  })

  it.effect(
    "fetches as what the agent is bound to, which may be all that reaches a private repository, else as its default",
    () =>
      Effect.gen(function* () {
        const root = yield* temporaryFolder
        const repo = makeGitRepo(join(root, "repo"))
        const commit = CommitId.make(repo.commit({ "README.md": "private" }))
        const server = yield* startGitHttps({ root, user: "bot", password: "canary-token" })
        yield* withVariable("GIT_SSL_CAINFO", server.cert)
        const url = `https://${server.host}/repo/.git`
        const agents = (git_identity: string) => ({
          ada: { repo: { url }, defaults: { ...CONFIG.agents.ada.defaults, git_identity } }
        })
        const named = (config: object) =>
          Effect.gen(function* () {
            const home = yield* makeHome(config, { token: "bot:canary-token" })
            const layer = Layer.provide(reposLayer(home), Layer.provide(layerRepoAccess, ConfigStore.layer({ home })))
            return { home, repos: yield* Effect.provide(Repos, layer) }
          })
        const git_identities = { robot: identity("token", `https://${server.host}/`), reader: identity("token") }
        const [robot, reader] = [ResourceName.make("robot"), ResourceName.make("reader")]
        const source = { url, ref: "main" }
        const global = makeGitRepo(join(root, "global"))
        global.commit(GLOBAL_FILES)
        const global_repo = { url: global.path }
        const { home, repos } = yield* named({ ...CONFIG, global_repo, git_identities, agents: agents("reader") })
        assert.include(String(yield* Effect.flip(repos.snapshot({ agent_id: ADA }, source))), "could not read Username")
        const unread = yield* Effect.flip(repos.at({ agent_id: ADA, git_identity: reader }, source, commit))
        assert.include(String(unread), "could not read Username")
        const files = yield* repos.at({ agent_id: ADA, git_identity: robot }, source, commit)
        assert.deepStrictEqual(
          files.map(({ path }) => path),
          ["README.md"]
        )
        assert.deepInclude(yield* repos.snapshot({ agent_id: ADA, git_identity: robot }, source), {
          commit,
          stale: false
        })
        const load = (bound?: ReadonlyMap<AgentId, ResourceName>) =>
          Effect.map(
            Effect.provide(
              loadHome(home, () => Effect.void, "process", bound),
              Layer.merge(NodeServices.layer, Layer.succeed(Repos, repos))
            ),
            ({ loaded }) => loaded.find(({ repo }) => repo === "ada")?.stale
          )
        assert.deepStrictEqual([yield* load(), yield* load(new Map([[ADA, robot]]))], [true, false])
        const other = yield* named({ ...CONFIG, global_repo, git_identities, agents: agents("robot") })
        assert.deepInclude(yield* other.repos.snapshot({ agent_id: ADA, git_identity: reader }, source), { commit })
      }).pipe(Effect.provide(NodeServices.layer)),
    { timeout: 300_000 }
  )

  it.effect("is asked for agents alone, and replaces what runs where somebody else is given", () =>
    Effect.gen(function* () {
      const root = yield* temporaryFolder
      const repo = makeGitRepo(join(root, "repo"))
      repo.commit({ "README.md": "x" })
      const asked: Array<string> = []
      const noting =
        (who: string): RepoAccess =>
        (agent_id, source) =>
          Effect.sync(() => {
            asked.push(`${who} ${agent_id}`)
            return source
          })
      const layer = Layer.provide(reposLayer(join(root, "home")), Layer.succeed(RepoAccess, noting("running")))
      const { snapshot } = yield* Effect.provide(Repos, layer)
      const source = { url: repo.path, ref: "main" }
      yield* snapshot({ global: true }, source, { access: noting("loaded") })
      yield* snapshot({ agent_id: ADA }, source)
      yield* snapshot({ agent_id: ADA }, source, { access: noting("loaded") })
      assert.deepStrictEqual(asked, ["running ada", "loaded ada"])
    })
  )

  it.effect("is by what is loaded, where a configuration is loaded that does not run yet", () =>
    Effect.gen(function* () {
      const home = yield* makeHome(CONFIG, SECRETS)
      const asked: Array<string | undefined> = []
      const snapshot: Repos["Service"]["snapshot"] = (owner, source, { access } = {}) =>
        Effect.gen(function* () {
          const checked = Result.getOrThrow(checkSource(source))
          const { credential } = "global" in owner || access === undefined ? checked : yield* access(ADA, checked)
          asked.push(credential?.type)
          return yield* new FetchFailed({ url: source.url, reason: "it is away", hint: "" })
        })
      yield* Effect.provideService(
        loadHome(home, () => Effect.void, "process"),
        Repos,
        { snapshot, at: () => Effect.never, uncommitted: () => Effect.succeed([]) }
      )
      assert.deepStrictEqual(asked, [undefined, "password"])
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
