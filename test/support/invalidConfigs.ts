/** A whole config.json, and two hundred ways in which it may be wrong, each with where and why (R57). */
import { Config } from "#schema/Config.ts"
import { Effect, Schema } from "effect"

type Json = Readonly<Record<string, unknown>>

const model = {
  provider: "openrouter",
  model: "anthropic/claude-sonnet-4-20250514",
  endpoint: "https://openrouter.ai/api/v1",
  temperature: 0.7,
  reasoning_effort: null,
  secret: "openrouter-key"
}
const mail = { smtp_host: "smtp.example.com", smtp_port: 587, imap_host: "imap.example.com", imap_port: 993 }
const voice_settings = { stability: 0.5, similarity_boost: 0.75, style: 0, use_speaker_boost: true, speed: 1 }

/** A configuration that has a resource of each kind. */
export const example = {
  global_repo: { url: "git@github.com:org/choir-global.git", ref: "main" },
  workspaces: {
    "main-ws": { path: "/var/lib/choir/workspaces/main" },
    scratch: { path: "/var/lib/choir/workspaces/scratch" }
  },
  models: {
    sonnet: model,
    gpt4o: { ...model, model: "openai/gpt-4o", temperature: 0.5 },
    o3: { ...model, model: "openai/o3", temperature: null, reasoning_effort: "medium" }
  },
  tts: {
    eleven: {
      provider: "elevenlabs",
      model_id: "eleven_multilingual_v2",
      endpoint: "https://api.elevenlabs.io/v1",
      secret: "elevenlabs-key"
    }
  },
  voice_profiles: {
    "default-en": { tts: "eleven", voice_id: "...", output_format: "opus_48000_128", voice_settings },
    narrator: { tts: "eleven", voice_id: "...", output_format: "mp3_44100_128", voice_settings }
  },
  stt: { ears: { provider: "openai", model_id: "whisper-1", endpoint: "https://api.openai.com/v1" } },
  git_identities: {
    "dev-identity": { name: "Dev Agent", email: "dev@choir.local", secret: "git-dev-token" },
    "ops-identity": { name: "Ops Agent", email: "ops@choir.local", secret: "git-ops-token" }
  },
  notion_integrations: {
    "personal-wiki": { secret: "notion-personal-key" },
    "work-wiki": { secret: "notion-work-key" }
  },
  email_accounts: {
    "primary-email": { ...mail, sharing: "exclusive", secret: "email-primary-creds" },
    notifications: { ...mail, sharing: "shared", secret: "email-notify-creds" }
  },
  search: { brave: { secret: "brave-api-key" } },
  embedding: {
    provider: "openrouter",
    model: "text-embedding-3-small",
    dimensions: 1536,
    endpoint: "https://openrouter.ai/api/v1",
    secret: "openrouter-key"
  },
  gateways: {
    "bot-main": { type: "telegram", secret: "tg-bot-main-token" },
    "bot-work": { type: "telegram", secret: "tg-bot-work-token" }
  },
  dms: {
    "admin-dm": { gateway: "bot-main", user_id: "123456789", admin: true },
    "user-dm": { gateway: "bot-main", user_id: "987654321", admin: false },
    "work-dm": { gateway: "bot-work", user_id: "123456789", admin: true }
  },
  postgres: { host: "localhost", port: 5432, database: "choir", secret: "postgres-admin-creds" },
  agents: {
    "agent-1": {
      repo: { url: "git@github.com:org/choir-agent-1.git", ref: "main" },
      defaults: {
        workspace: "main-ws",
        llm: "sonnet",
        voice_profile: "default-en",
        git_identity: "dev-identity",
        notion: "personal-wiki",
        email: "primary-email",
        dm: "admin-dm"
      }
    }
  },
  heartbeat_interval_ms: 5000,
  crash_detection_threshold_ms: 10_000,
  rate_limit_retry_ms: 1000,
  log_archive_threshold_lines: 100_000
}

const isRecord = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value)

const DELETED = Symbol("deleted")

/** The value with what stands at a dotted path replaced or deleted; missing parts on the way are made. */
export const withAt = (value: unknown, path: ReadonlyArray<string>, leaf: unknown): unknown => {
  const [key, ...rest] = path
  if (key === undefined) return leaf
  const record = isRecord(value) ? value : {}
  const inner = withAt(record[key], rest, leaf)
  const { [key]: _replaced, ...others } = record
  return inner === DELETED ? others : { ...others, [key]: inner }
}

export const nested = (levels: number): unknown => JSON.parse("[".repeat(levels) + "]".repeat(levels))

export type Row = readonly [path: string, value: unknown, reason: RegExp, reported?: string]

/** Where, what stands there, why it is refused, and where that is told when it is not the same place. */
const NAMED: ReadonlyArray<Row> = [
  ["global_repo", DELETED, /missing/iu],
  ["global_repo", "git@x:y", /object/iu],
  ["global_repo.url", "", /empty/u],
  ["global_repo.url", 7, /string/u],
  ["global_repo.branch", "main", /no excess property/u],
  ["global_repo.ref", "", /empty/u],
  ["workspace", {}, /no excess property/u],
  ["workspaces.Main", { path: "/w" }, /no excess property/u],
  ["workspaces.main-ws.path", "relative/path", /absolute path/u],
  ["workspaces.main-ws.path", DELETED, /missing/iu],
  ["workspaces.main-ws.mode", "rw", /no excess property/u],
  ["workspaces.twin", { path: "/var/lib/choir/workspaces/main/" }, /same folder as "main-ws"/u],
  ["models.sonnet.endpoint", "openrouter.ai/api", /http/u],
  ["models.sonnet.endpoint", "file:///etc/passwd", /http/u],
  ["models.sonnet.endpoint", DELETED, /missing/iu],
  ["models.sonnet.model", "", /empty/u],
  ["models.sonnet.provider", null, /string/u],
  ["models.sonnet.temperature", 2.5, /between|less than/iu],
  ["models.sonnet.temperature", "warm", /number/u],
  ["models.sonnet.max_tokens", 0, /greater than 0/u],
  ["models.sonnet.max_tokens", 1.5, /integer/u],
  ["models.sonnet.context_window", -1, /greater than 0/u],
  ["models.sonnet.price", { input: 1 }, /missing/iu, "models.sonnet.price.output"],
  ["models.sonnet.price", { input: -1, output: 1 }, /greater than or equal to 0/u, "models.sonnet.price.input"],
  ["models.sonnet.fallback", ["nope"], /no model "nope" \(known: .*gpt4o/u, "models.sonnet.fallback.0"],
  ["models.sonnet.fallback", ["sonnet"], /own fallback/u, "models.sonnet.fallback.0"],
  ["models.sonnet.request_template", ["top_p"], /object/u],
  ...["model", "messages", "tools", "stream", "n"].map((key): Row => [
    `models.sonnet.request_template.${key}`,
    null,
    /set by Choir and cannot be in a request template/u
  ]),
  ["models.sonnet.request_template", { a: "x".repeat(16_400) }, /more than 16384 characters/u],
  ["models.sonnet.request_template", { a: nested(16) }, /deeper than 16 levels/u],
  ["models.sonnet.request_template", { a: nested(2000) }, /deeper than 16 levels/u],
  ["models.sonnet.secret", "UPPER", /secret name/u],
  ["models.sonnet.api_key", "sk-1", /no excess property/u],
  ["tts.eleven.provider", "other", /elevenlabs/u],
  ["tts.eleven.secret", DELETED, /ElevenLabs needs one/u],
  ["stt.ears.provider", "other", /openai/u],
  ["stt.ears.price_per_minute", -1, /greater|minimum/iu],
  ["voice_profiles.narrator.tts", "nope", /no tts provider "nope"/u],
  ["voice_profiles.narrator.voice_settings.speed", 3, /between|less than/iu],
  ["voice_profiles.narrator.voice_settings.stability", 1.1, /between|less than/iu],
  ["git_identities.dev-identity.secret", DELETED, /missing/iu],
  ["notion_integrations.work-wiki.endpoint", "ftp://x", /http/u],
  ["email_accounts.notifications.smtp_port", 0, /between|greater/iu],
  ["email_accounts.notifications.imap_port", 65_536, /between|less/iu],
  ["email_accounts.notifications.sharing", "both", /exclusive.*shared/u],
  ["search.brave.secret", "", /secret name/u],
  ["embedding.provider", "cohere", /openai/u],
  ["embedding.dimensions", 0, /greater than 0/u],
  ["gateways.bot-main.type", "irc", /telegram|console/u, "gateways.bot-main"],
  ["gateways.bot-main.secret", DELETED, /missing/iu],
  ["dms.user-dm.gateway", "nope", /no gateway "nope" \(known: bot-main, bot-work\)/u],
  ["dms.user-dm.user_id", 987_654_321, /string/u],
  ["dms.user-dm.admin", "yes", /boolean/u],
  [
    "dms.crew",
    { gateway: "bot-main", user_id: "-100200300", admin: true },
    /a group cannot be an admin.*leave "admin" out/u,
    "dms.crew.admin"
  ],
  ["dms.again", { gateway: "bot-main", user_id: "123456789" }, /same gateway and user as "admin-dm"/u],
  ["postgres", { embedded: false }, /true|missing/iu],
  ["postgres", { host: "h", database: "d" }, /missing/iu],
  ["postgres.port", 70_000, /between|less/iu],
  ["runtime.type", "podman", /auto.*docker.*sandbox.*process/u],
  ["runtime.network", "none", /public.*open.*allowlist/u],
  ["runtime.allow", ["*.example.org"], /wildcard/u],
  ["runtime.allow", ["ok.example", "169.254.169.254:80"], /not an address of another host/u],
  ["runtime.network", "allowlist", /at least one host/u, "runtime.allow"],
  ["runtime.cpus", 0, /greater than 0/u],
  ["runtime.memory_mb", 64, /between|greater/iu],
  ["runtime.pids", 8, /between|greater/iu],
  ["runtime.docker_socket", "docker.sock", /absolute path/u],
  ["runtime.oci_runtime", "kata", /runc.*runsc/u],
  ["transport.http", {}, /missing/iu, "transport.http.listen"],
  ["agents.control", { repo: { url: "/r" }, defaults: { workspace: "scratch", llm: "o3" } }, /no excess property/u],
  ["agents.choird", { repo: { url: "/r" }, defaults: { workspace: "scratch", llm: "o3" } }, /choird is reserved/u],
  ["agents.Agent", { repo: { url: "/r" }, defaults: { workspace: "scratch", llm: "o3" } }, /no excess property/u],
  ["agents.agent-1.repo", DELETED, /missing/iu],
  ["agents.agent-1.defaults.workspace", "", /resource name/u],
  ["agents.agent-1.defaults.workspace", "nope", /no workspace "nope" \(known: main-ws, scratch\)/u],
  ["agents.agent-1.defaults.llm", "nope", /no model "nope"/u],
  ["agents.agent-1.defaults.core_llm", "nope", /no model "nope"/u],
  ["agents.agent-1.defaults.voice_profile", "nope", /no voice profile "nope"/u],
  ["agents.agent-1.defaults.git_identity", "nope", /no git identity "nope"/u],
  ["agents.agent-1.defaults.notion", "nope", /no Notion integration "nope"/u],
  ["agents.agent-1.defaults.email", "nope", /no e-mail account "nope"/u],
  ["agents.agent-1.defaults.search", "nope", /no search engine "nope" \(known: brave\)/u],
  [
    "search.other",
    { secret: "other-key" },
    /must name one of the search engines: brave, other/u,
    "agents.agent-1.defaults.search"
  ],
  ["agents.agent-1.defaults.dm", "nope", /no DM "nope" \(known: admin-dm, user-dm, work-dm\)/u],
  ["agents.agent-1.defaults.dm", ["work-dm", "nope"], /no DM "nope"/u, "agents.agent-1.defaults.dm.1"],
  ["agents.agent-1.defaults.dm", ["work-dm", "work-dm"], /each DM once/u],
  ["agents.agent-1.defaults.dm", [], /at least one DM/u],
  ["agents.agent-1.defaults.dm", Array.from({ length: 17 }, (_, at) => `dm-${at}`), /at most 16 DMs/u],
  ["agents.agent-1.defaults.dm", 7, /string \| array/u],
  ["agents.agent-1.defaults.browser", "b", /no excess property/u],
  ["budgets.max_core_jobs", 0, /greater than 0/u],
  ["budgets.max_cost_usd", 0, /greater than 0/u],
  ["budgets.skill_retry_budget", -1, /greater than or equal to 0/u],
  ["budgets.max_tokens", 5, /no excess property/u],
  ["memory.event_window", 2, /between|greater/iu],
  ["memory.compact_at", 1, /between|less/iu],
  ["memory.cross_read", "some", /all.*none|array/iu],
  ["approvals.confirm_external", "sometimes", /never.*tainted.*always/u],
  ["approvals.timeout_ms", 0, /greater than 0/u],
  ["heartbeat_interval_ms", 50, /between|greater/iu],
  ["heartbeat_interval_ms", 6000, /at least twice heartbeat_interval_ms \(12000\)/u, "crash_detection_threshold_ms"],
  ["rate_limit_retry_ms", "1s", /number/u],
  ["log_archive_threshold_lines", 0, /greater than 0/u],
  ["$schema", 4, /string/u],
  ["feature_flags", {}, /no excess property/u]
]

/** Tables, whose keys are names; a name that is none is told like an unknown key. */
const TABLES = new Set([
  "workspaces",
  "models",
  "tts",
  "voice_profiles",
  "stt",
  "git_identities",
  "notion_integrations",
  "email_accounts",
  "search",
  "gateways",
  "dms",
  "agents"
])

const full = {
  ...example,
  runtime: { type: "auto" },
  transport: { http: { listen: "127.0.0.1:9400" } },
  budgets: { max_core_jobs: 8 },
  memory: { event_window: 50 },
  approvals: { timeout_ms: 1000 }
}

/** Every object and every value below a path, by dotted path. */
const places = (value: unknown, path: ReadonlyArray<string>): ReadonlyArray<readonly [string, unknown]> =>
  isRecord(value)
    ? [[path.join("."), value], ...Object.entries(value).flatMap(([key, inner]) => places(inner, [...path, key]))]
    : [[path.join("."), value]]

/** What a union refuses it tells at the place of the whole entry. */
const unionOf = (path: string) => /^gateways\.[^.]+/u.exec(path)?.[0]

const unknownKeys = places(full, []).flatMap(([path, value]): ReadonlyArray<Row> => {
  if (!isRecord(value)) return []
  const key = TABLES.has(path) ? "Not A Name" : "surprise"
  const at = path === "" ? key : `${path}.${key}`
  return [[at, 1, /no excess property/u]]
})

/** An array is of no key's type, except for a list of DMs, which has rows of its own. */
const wrongTypes = places(full, []).flatMap(([path]): ReadonlyArray<Row> =>
  path === "" || path.endsWith(".defaults.dm")
    ? []
    : [[path, [[]], /expected|missing/iu, path.endsWith(".type") ? (unionOf(path) ?? path) : path]]
)

export const INVALID: ReadonlyArray<Row> = [...NAMED, ...unknownKeys, ...wrongTypes]

/** The configuration that a row stands for. */
export const invalidConfig = ([path, value]: Row): unknown => withAt(full, path.split("."), value)

/** Where the row is told. */
export const placeOf = ([path, , , reported]: Row): string => reported ?? path

export const decoded = (config: unknown) =>
  Schema.decodeUnknownEffect(Config, { errors: "all", onExcessProperty: "error" })(config).pipe(Effect.flip)
