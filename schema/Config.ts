/**
 * config.json (docs/configuration.md): strict, with every default written here, and with the
 * references between its parts checked. The JSON Schema that `choirctl config schema` prints is made from it.
 */
import { Schema } from "effect"
import { AllowedHost } from "./AllowedHost.ts"
import { Capabilities, type Capability, GRANTS_DEFAULT } from "./Capability.ts"
import { ModelApi } from "./Continuation.ts"
import { CORE_JOBS_MAX } from "./Core.ts"
import { EmailAccount } from "./EmailAccount.ts"
import { Embedding, embeddingProblems } from "./Embedding.ts"
import { GitIdentity } from "./GitIdentity.ts"
import { AgentId, ResourceName, SecretName } from "./Ids.ts"
import { Port } from "./Port.ts"
import { RequestTemplate } from "./RequestTemplate.ts"
import { dmList, DmNames } from "./ResourceBindings.ts"
import { BINDINGS, NAMED_BINDINGS } from "./Resources.ts"
import { RetentionConfig } from "./Retention.ts"
import { Telemetry } from "./Telemetry.ts"
import { TimeZone } from "./TimeZone.ts"
import { HttpTransport } from "./Transport.ts"
import { Url } from "./Url.ts"
import { Stt, Tts, VoiceProfile } from "./Voice.ts"
import { withDefault } from "./withDefault.ts"

const HostPath = Schema.String.check(
  Schema.isPattern(/^\/[^\0]*$/u, { message: "must be an absolute path of this host" })
)
const Positive = Schema.Int.check(Schema.isGreaterThan(0))
const Text = Schema.String.check(Schema.isMinLength(1, { message: "must not be empty" }))
const named = <S extends Schema.Top>(value: S) => Schema.Record(ResourceName, value)

/** A git repository and the ref that is used of it. An absolute path of this host is a legal url. */
export const Repo = Schema.Struct({ url: Text, ref: withDefault(Text, "main") })
export type Repo = typeof Repo.Type

export const Workspace = Schema.Struct({ path: HostPath })

const Dollars = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))

/** Left out of requests, as any other, for models that are known to refuse it. */
export const TEMPERATURE_DEFAULT = 0.7
/** Tokens; most models that take tools have at least as many. */
export const CONTEXT_WINDOW_DEFAULT = 128_000

/** A model behind an API of `api`. `price` is USD per million tokens; without `cache_read` and `cache_write` cached tokens cost as much as `input`. */
export const Model = Schema.Struct({
  provider: Text,
  model: Text,
  endpoint: Url,
  api: withDefault(ModelApi, "chat"),
  cache: withDefault(Schema.Literals(["auto", "off"]), "auto"),
  temperature: withDefault(
    Schema.NullOr(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 2 }))),
    TEMPERATURE_DEFAULT
  ),
  reasoning_effort: withDefault(Schema.NullOr(Text), null),
  /** Whether it is shown images; without it the table of models decides (`quirks.ts`). */
  images: Schema.optionalKey(Schema.Boolean),
  secret: Schema.optionalKey(SecretName),
  /** Without it the table of models decides (`quirks.ts`). */
  max_tokens: Schema.optionalKey(Positive),
  context_window: withDefault(Positive, CONTEXT_WINDOW_DEFAULT),
  price: Schema.optionalKey(
    Schema.Struct({
      input: Dollars,
      output: Dollars,
      cache_read: Schema.optionalKey(Dollars),
      cache_write: Schema.optionalKey(Dollars)
    })
  ),
  fallback: withDefault(Schema.Array(ResourceName), []),
  request_template: withDefault(RequestTemplate, {})
})
export type Model = typeof Model.Type

/** `secret` is the integration's token. */
export const Notion = Schema.Struct({ secret: SecretName, endpoint: Schema.optionalKey(Url) })
/** A search engine; `secret` is its key. */
export const Search = Schema.Struct({ secret: SecretName, endpoint: Schema.optionalKey(Url) })
/** A place people talk from: a Telegram bot, or the console of `choirctl chat`. */
export const Gateway = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("telegram"),
    secret: SecretName,
    api_root: withDefault(Url, "https://api.telegram.org"),
    /** The folder of the files of a Bot API server of one's own that runs with `--local`. */
    local_files: Schema.optionalKey(HostPath)
  }),
  Schema.Struct({ type: Schema.Literal("console") })
])
export type Gateway = typeof Gateway.Type

/** One person, or one group, at one gateway. All DMs of a bot are its allow list. `timezone` is this person's, where it is not the home's. */
export const Dm = Schema.Struct({
  gateway: ResourceName,
  user_id: Text,
  admin: withDefault(Schema.Boolean, false),
  timezone: Schema.optionalKey(TimeZone)
})
export type Dm = typeof Dm.Type

/** Embedded by default; else a server, by its parts or by a secret that holds the whole url. */
export const Postgres = Schema.Union([
  Schema.Struct({ embedded: Schema.Literal(true) }),
  Schema.Struct({ url_secret: SecretName }),
  Schema.Struct({ host: Text, port: withDefault(Port, 5432), database: Text, secret: SecretName })
])
export type Postgres = typeof Postgres.Type

export const RuntimeConfig = Schema.Struct({
  type: withDefault(Schema.Literals(["auto", "docker", "sandbox", "process"]), "auto"),
  docker_socket: Schema.optionalKey(HostPath),
  network: withDefault(Schema.Literals(["public", "open", "allowlist"]), "public"),
  allow: withDefault(Schema.Array(AllowedHost).check(Schema.isMaxLength(64)), []),
  cpus: withDefault(Schema.Finite.check(Schema.isGreaterThan(0)), 2),
  memory_mb: withDefault(Schema.Int.check(Schema.isBetween({ minimum: 128, maximum: 1_048_576 })), 2048),
  pids: withDefault(Schema.Int.check(Schema.isBetween({ minimum: 32, maximum: 32_768 })), 256),
  oci_runtime: Schema.optionalKey(Schema.Literals(["runc", "runsc"])),
  build_network: withDefault(Schema.Literals(["none", "open"]), "none"),
  allow_unmapped_root: withDefault(Schema.Boolean, false)
})
export type RuntimeConfig = typeof RuntimeConfig.Type

const Transport = Schema.Struct({ http: Schema.optionalKey(HttpTransport) })

/**
 * The limits of a session and its jobs (7.6). `turn_max_steps` bounds the model calls of one edge turn, `message_max_steps` those of one
 * message with its jobs and reports.
 */
export const Budgets = Schema.Struct({
  max_core_jobs: withDefault(Positive.check(Schema.isLessThanOrEqualTo(CORE_JOBS_MAX)), 8),
  total_session_tokens: withDefault(Positive, 2_000_000),
  max_tool_calls_per_session: withDefault(Positive, 2000),
  max_cost_usd: withDefault(Schema.NullOr(Schema.Finite.check(Schema.isGreaterThan(0))), null),
  per_job_max_steps: withDefault(Positive, 60),
  per_job_max_tool_calls: withDefault(Positive, 200),
  per_job_wall_time_ms: withDefault(Positive, 1_800_000),
  max_injections_per_job: withDefault(Positive, 20),
  skill_retry_budget: withDefault(Schema.Natural, 2),
  turn_max_steps: withDefault(Positive, 24),
  message_max_steps: withDefault(Positive, 96)
})
export type Budgets = typeof Budgets.Type

/** The agents whose memory others may search. None, unless somebody says so: what a person tells one agent is for that one. */
const CrossRead = Schema.Union([Schema.Literals(["all", "none"]), Schema.Array(AgentId)])
export const MemoryConfig = Schema.Struct({
  event_window: withDefault(Schema.Int.check(Schema.isBetween({ minimum: 4, maximum: 1000 })), 50),
  compact_at: withDefault(Schema.Finite.check(Schema.isBetween({ minimum: 0.1, maximum: 0.95 })), 0.8),
  /** The most tokens of a lane's window whatever the model's context, or null: each step reads them again. */
  window_tokens_max: withDefault(Schema.NullOr(Positive), null),
  mid_term_sessions: withDefault(Positive, 10),
  summary_timeout_ms: withDefault(Positive, 30_000),
  cross_read: withDefault(CrossRead, "none"),
  /** Tokens of what long-term memory adds to a user's message; 0 adds nothing. */
  recall_tokens_max: withDefault(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 4000 })), 600)
})
/** Jobs of a pool that run at once. */
const Capacity = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: CORE_JOBS_MAX }))
const Pools = Schema.Struct({
  research: withDefault(Capacity, 4),
  implementation: withDefault(Capacity, 2),
  verification: withDefault(Capacity, 2),
  review: withDefault(Capacity, 2)
})

/** `progress_interval_ms` is the shortest time between two lines to the user on one running job; null tells nothing before its end. */
export const JobsConfig = Schema.Struct({
  progress_interval_ms: withDefault(
    Schema.NullOr(Schema.Int.check(Schema.isBetween({ minimum: 10_000, maximum: 86_400_000 }))),
    300_000
  ),
  pools: withDefault(Pools, {})
})
export type JobsConfig = typeof JobsConfig.Type
/** Recorded runs on which a proposed skill is rehearsed, none with 0, and the USD that one rehearsal may cost. */
const Rehearsal = Schema.Struct({
  runs: withDefault(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10 })), 3),
  max_cost_usd: withDefault(Dollars, 0.5)
})

/** `grants` says for each agent which effects its skills may have; an agent without an entry has GRANTS_DEFAULT. */
export const SkillsConfig = Schema.Struct({
  grants: withDefault(Schema.Record(AgentId, Capabilities), {}),
  rehearsal: withDefault(Rehearsal, {})
})

/** The grants of an agent. */
export const grantsOf = (
  { grants }: Pick<typeof SkillsConfig.Type, "grants">,
  agent_id: string
): ReadonlyArray<Capability> =>
  (Object.hasOwn(grants, agent_id) ? grants[AgentId.make(agent_id)] : undefined) ?? GRANTS_DEFAULT

export const ApprovalsConfig = Schema.Struct({
  timeout_ms: withDefault(Positive, 1_800_000),
  confirm_external: withDefault(Schema.Literals(["never", "tainted", "always"]), "never")
})

const AgentDefaults = Schema.Struct({
  workspace: ResourceName,
  llm: ResourceName,
  core_llm: Schema.optionalKey(ResourceName),
  voice_profile: Schema.optionalKey(ResourceName),
  git_identity: Schema.optionalKey(ResourceName),
  notion: Schema.optionalKey(ResourceName),
  email: Schema.optionalKey(ResourceName),
  /** Not needed where config.json has one engine alone. */
  search: Schema.optionalKey(ResourceName),
  dm: Schema.optionalKey(DmNames)
})
/** The tools of the web that an agent has: none, pages as text, or a browser as well. */
export const AgentWeb = Schema.Literals(["off", "fetch", "browse"])
export const Agent = Schema.Struct({ repo: Repo, defaults: AgentDefaults, web: withDefault(AgentWeb, "browse") })
export type Agent = typeof Agent.Type

/** Milliseconds between two beats, tries or checks. */
export const IntervalMs = Schema.Int.check(Schema.isBetween({ minimum: 100, maximum: 600_000 }))

/** Authorities that choird, choirctl and agents trust besides those that Node knows. */
export const Tls = Schema.Struct({ ca_file: Schema.optionalKey(HostPath) })

/** The shape alone; {@link Config} adds the references. */
const ConfigShape = Schema.Struct({
  $schema: Schema.optionalKey(Schema.String),
  global_repo: Repo,
  timezone: Schema.optionalKey(TimeZone),
  workspaces: withDefault(named(Workspace), {}),
  models: withDefault(named(Model), {}),
  tts: withDefault(named(Tts), {}),
  voice_profiles: withDefault(named(VoiceProfile), {}),
  stt: withDefault(named(Stt), {}),
  git_identities: withDefault(named(GitIdentity), {}),
  notion_integrations: withDefault(named(Notion), {}),
  email_accounts: withDefault(named(EmailAccount), {}),
  search: withDefault(named(Search), {}),
  embedding: Schema.optionalKey(Embedding),
  gateways: withDefault(named(Gateway), {}),
  dms: withDefault(named(Dm), {}),
  postgres: withDefault(Postgres, { embedded: true }),
  runtime: withDefault(RuntimeConfig, {}),
  transport: withDefault(Transport, {}),
  agents: withDefault(Schema.Record(AgentId, Agent), {}),
  budgets: withDefault(Budgets, {}),
  memory: withDefault(MemoryConfig, {}),
  jobs: withDefault(JobsConfig, {}),
  approvals: withDefault(ApprovalsConfig, {}),
  skills: withDefault(SkillsConfig, {}),
  heartbeat_interval_ms: withDefault(IntervalMs, 5000),
  crash_detection_threshold_ms: withDefault(IntervalMs, 10_000),
  rate_limit_retry_ms: withDefault(IntervalMs, 1000),
  log_archive_threshold_lines: withDefault(Positive, 100_000),
  retention: withDefault(RetentionConfig, {}),
  telemetry: withDefault(Telemetry, {}),
  tls: withDefault(Tls, {})
})
type ConfigShape = typeof ConfigShape.Type

interface Problem {
  readonly path: ReadonlyArray<string>
  readonly issue: string
}

const names = (table: Readonly<Record<string, unknown>>) => {
  const known = Object.keys(table)
  return known.length === 0 ? "none is defined" : `known: ${known.join(", ")}`
}

/** The problem of a name that its table lacks, worded for the person who has to fix config.json. */
const missing = (
  kind: string,
  table: Readonly<Record<string, unknown>>,
  path: ReadonlyArray<string>,
  name: string | undefined
): ReadonlyArray<Problem> =>
  name === undefined || Object.hasOwn(table, name)
    ? []
    : [{ path, issue: `there is no ${kind} "${name}" (${names(table)})` }]

/** The names in the defaults of agents that their sections lack. */
const agentProblems = (config: ConfigShape): ReadonlyArray<Problem> =>
  Object.entries(config.agents).flatMap(([id, { defaults }]) =>
    NAMED_BINDINGS.flatMap((binding) => {
      const { label, section } = BINDINGS[binding]
      const names = defaults[binding]
      const at = ["agents", id, "defaults", binding]
      return dmList(names).flatMap((name, index) =>
        missing(label, config[section], typeof names === "string" ? at : [...at, String(index)], name)
      )
    })
  )

/** Of several search engines each agent names its own: by the order of the file, an edit of it would send queries and a key to another one. */
const searchProblems = ({ agents, search }: ConfigShape): ReadonlyArray<Problem> => {
  const engines = Object.keys(search)
  if (engines.length < 2) return []
  return Object.entries(agents).flatMap(([id, { defaults }]) =>
    defaults.search === undefined
      ? [
          {
            path: ["agents", id, "defaults", "search"],
            issue: `must name one of the search engines: ${engines.join(", ")}`
          }
        ]
      : []
  )
}

/** Two names for one thing would let two agents lease it at once. */
const duplicates = <A>(
  table: Readonly<Record<string, A>>,
  section: string,
  identity: (entry: A) => string,
  what: string
): ReadonlyArray<Problem> => {
  const first = new Map<string, string>()
  return Object.entries(table).flatMap(([name, entry]) => {
    const key = identity(entry)
    const other = first.get(key)
    if (other === undefined) first.set(key, name)
    return other === undefined ? [] : [{ path: [section, name], issue: `is the same ${what} as "${other}"` }]
  })
}

/** Whether a DM is a group of Telegram, whose numbers are below 0. */
const isGroup = ({ user_id }: Dm): boolean => /^-\d+$/u.test(user_id)

const GROUP_ADMIN =
  'a group cannot be an admin, since each of its members would be one: leave "admin" out here, and set it in the DM of each admin\'s private chat'

const configProblems = (config: ConfigShape): ReadonlyArray<Problem> => [
  ...embeddingProblems(config.embedding),
  ...Object.entries(config.dms).flatMap(([name, dm]) =>
    missing("gateway", config.gateways, ["dms", name, "gateway"], dm.gateway)
  ),
  ...Object.entries(config.dms).flatMap(([name, dm]) =>
    dm.admin && isGroup(dm) ? [{ path: ["dms", name, "admin"], issue: GROUP_ADMIN }] : []
  ),
  ...Object.entries(config.voice_profiles).flatMap(([name, profile]) =>
    missing("tts provider", config.tts, ["voice_profiles", name, "tts"], profile.tts)
  ),
  ...Object.entries(config.tts).flatMap(([name, { provider, secret }]) =>
    provider === "elevenlabs" && secret === undefined
      ? [{ path: ["tts", name, "secret"], issue: "must name the secret of the API key: ElevenLabs needs one" }]
      : []
  ),
  ...Object.entries(config.models).flatMap(([name, model]) =>
    model.fallback.flatMap((other, index) =>
      other === name
        ? [{ path: ["models", name, "fallback", String(index)], issue: "a model cannot be its own fallback" }]
        : missing("model", config.models, ["models", name, "fallback", String(index)], other)
    )
  ),
  ...agentProblems(config),
  ...searchProblems(config),
  ...Object.keys(config.skills.grants).flatMap((id) => missing("agent", config.agents, ["skills", "grants", id], id)),
  // Its log would be choird.log.
  ...(Object.hasOwn(config.agents, "choird")
    ? [{ path: ["agents", "choird"], issue: "the id choird is reserved: it is what the host daemon signs with" }]
    : []),
  ...duplicates(config.workspaces, "workspaces", (w) => w.path.replace(/\/+$/u, ""), "folder"),
  ...duplicates(config.dms, "dms", (dm) => `${dm.gateway} ${dm.user_id}`, "gateway and user"),
  ...(config.crash_detection_threshold_ms < 2 * config.heartbeat_interval_ms
    ? [
        {
          path: ["crash_detection_threshold_ms"],
          issue: `must be at least twice heartbeat_interval_ms (${2 * config.heartbeat_interval_ms})`
        }
      ]
    : []),
  ...(config.runtime.network === "allowlist" && config.runtime.allow.length === 0
    ? [{ path: ["runtime", "allow"], issue: 'must name at least one host when network is "allowlist"' }]
    : [])
]

/** config.json. A name that refers to nothing is an error at the path of the reference. */
export const Config = ConfigShape.check(Schema.makeFilter((config) => configProblems(config)))
export type Config = typeof Config.Type
