/** An installation in which every kind of resource that has a secret is there, and most are used, in containers. */
import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { Effect } from "effect"
import { collector } from "../collector.ts"
import { postgresDatabase, temporaryFolder } from "../engines.ts"
import { makeRemoteRepo, startGitHttps, startSshd } from "../gitServers.ts"
import { AGENT, makeInstallation } from "../installation.ts"
import { lanAddress } from "../reachable.ts"
import { makeProvider, offlineModel } from "../testing/Provider.ts"
import { makeTelegram } from "../testing/Telegram.ts"
import { leakTool } from "./leaks.ts"
import { type Canary, makeCanaries, sshCanary } from "./secrets.ts"

/** The person who talks with the agent. */
export const USER = 4711

interface Around {
  readonly made: ReturnType<typeof makeCanaries>
  readonly ssh: Canary
  readonly sshUrl: string
  readonly https: { readonly host: string }
  readonly sshd: { readonly known_hosts: ReadonlyArray<string> }
  readonly telegram: string
  readonly otlp: string
  readonly endpoint: string
}

const NO_MAIL = { smtp_host: "127.0.0.1", smtp_port: 1, imap_host: "127.0.0.1", imap_port: 1 }
const PERSON = { name: "Ada", email: "ada@example.org" }

const table = (all: ReadonlyArray<Canary>, entry: object) =>
  Object.fromEntries(all.map(({ name }) => [name, { ...entry, secret: name }]))

/** config.json, in which each secret but the spare ones belongs to something. */
const configOf = ({ endpoint, https, made, otlp, ssh, sshUrl, sshd, telegram }: Around) => {
  const { used } = made
  const model = { provider: "test", model: "offline-model", temperature: 0, endpoint }
  return {
    models: {
      test: { ...model, secret: used.edge.name, fallback: ["second"] },
      core: { ...model, secret: used.core.name },
      second: { ...model, secret: used.fallback.name },
      ...table(made.models, model)
    },
    gateways: {
      bot: { type: "telegram", secret: used.telegram.name, api_root: telegram },
      terminal: { type: "console" }
    },
    dms: {
      phone: { gateway: "bot", user_id: String(USER), admin: true },
      me: { gateway: "terminal", user_id: "local", admin: true }
    },
    git_identities: {
      web: { ...PERSON, secret: used.https.name, remotes: [`https://${https.host}/`] },
      key: { ...PERSON, secret: ssh.name, remotes: [sshUrl], known_hosts: [...sshd.known_hosts] },
      ...table(made.git, PERSON)
    },
    tts: table(made.tts, { provider: "elevenlabs", model_id: "m", endpoint }),
    voice_profiles: { voice: { tts: "tts-a", voice_id: "v" } },
    notion_integrations: table(made.notion, {}),
    email_accounts: table(made.email, NO_MAIL),
    search: table(made.search, {}),
    embedding: { provider: "openai", model: "e", dimensions: 8, secret: "embedding-a" },
    agents: {
      [AGENT]: {
        repo: { url: `https://${https.host}/agent.git` },
        defaults: {
          workspace: "main",
          llm: "test",
          core_llm: "core",
          dm: "phone",
          git_identity: "web",
          search: "search-a"
        }
      }
    },
    telemetry: { otlp: { endpoint: otlp, secret: used.otlp.name, interval_ms: 1000 } },
    heartbeat_interval_ms: 200
  }
}

/** Real servers and doubles around it, and the secrets of this seed in it. */
export const makeCanaryInstallation = Effect.fnUntraced(function* (seed: number, docker_socket: string) {
  const made = makeCanaries(seed)
  const { used } = made
  const provider = yield* makeProvider
  yield* provider.otherwise((request) => offlineModel(request, 0))
  const telegram = yield* makeTelegram
  const bot = telegram.bot(used.telegram.value)
  const otlp = yield* collector()
  const database = yield* postgresDatabase
  const root = yield* temporaryFolder
  const address = lanAddress()
  const https = yield* startGitHttps({ root, user: "bot", password: used.https.needle, address })
  const sshd = yield* startSshd(address)
  const ssh = sshCanary("git-ssh", sshd.key)
  const sshUrl = `ssh://root@${address}:${sshd.port}`
  const repos = { https: makeRemoteRepo(root, "app.git"), ssh: makeRemoteRepo(root, "deep.git") }
  const url = `postgres://${database.user}:${made.database}@${encodeURIComponent(database.host)}:${database.port}/${database.database}`
  const postgres: Canary = { name: "postgres-url", value: url, needle: made.database }
  const secrets = [
    ...Object.values(used).filter((canary) => canary !== used.replaced),
    ...[made.notion, made.email, made.tts, made.search, made.embedding, made.models, made.git, made.spare].flat(),
    postgres,
    ssh
  ]
  const around = { made, https, sshd, ssh, sshUrl, telegram: telegram.url, otlp: otlp.endpoint }
  const told = ["llm", "core_llm", "git_identity", used.fallback.name, "notion-a", "email-a", "tts-a"]
  const choir = yield* makeInstallation({
    endpoint: provider.endpoint,
    runtime: { docker_socket },
    postgres: { url_secret: postgres.name },
    secrets: Object.fromEntries(secrets.map(({ name, value }) => [name, value])),
    tools: [leakTool(told)],
    // choird's git trusts what choird's user does.
    env: { SSL_CERT_FILE: https.cert },
    config: ({ endpoint }) => configOf({ ...around, endpoint })
  })
  const agent = join(root, "agent.git")
  execFileSync("git", ["clone", "--quiet", "--bare", join(choir.home, "sources/agent"), agent])
  execFileSync("git", ["-C", agent, "config", "http.receivepack", "true"])
  const values = Object.fromEntries(secrets.map(({ name, value }) => [name, value]))
  return { ...choir, bot, values, database, https, made, otlp, provider, repos, root, secrets, sshUrl, sshd, telegram }
})
