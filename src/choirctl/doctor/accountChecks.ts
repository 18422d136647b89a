/** The accounts of agents in config.json, each tried once by the smallest request that shows whether its secret counts. */
import { Effect, Redacted } from "effect"
import type { Config } from "#schema/Config.ts"
import type { SecretsFile } from "#schema/Secrets.ts"
import { ask, type CheckAnswer, CheckFailed, quoted } from "./checkHttp.ts"
import { type Check, check } from "./hostChecks.ts"
import { LoginFailed, MAIL_LOGIN_MS_MAX, mailLogin, type MailServer } from "./mailLogin.ts"
import { valueOf } from "./secretValue.ts"
import { SILENCE } from "./silence.ts"

/** How many accounts are tried at once. */
const ACCOUNTS_AT_ONCE = 4
/** The words that a service is given to say. */
const SPOKEN = "Ok."

const SEARCH_ENDPOINT = "https://api.search.brave.com/res/v1/web/search"
const NOTION_ENDPOINT = "https://api.notion.com"
const NOTION_VERSION = "2025-09-03"

const bare = (endpoint: string) => endpoint.replace(/\/+$/u, "")

/** Whether an answer is a success; if not, the problem in words and the fix. */
const succeeded = (
  answer: CheckAnswer,
  url: string,
  key: string,
  fixes: { readonly key: string; readonly other: string }
) => {
  const { status } = answer
  if (status >= 200 && status < 300) return Effect.void
  const { host } = new URL(url)
  const isKey = status === 401 || status === 403 || (status === 422 && /TOKEN/u.test(answer.text))
  return new CheckFailed({
    obstacle: isKey ? "key" : status === 429 || status >= 500 ? "busy" : "address",
    problem: `${host} ${isKey ? "refuses the key" : "does not do it"} (${status})${quoted(answer, key)}`,
    fix: isKey ? fixes.key : status === 429 || status >= 500 ? "Try again later" : fixes.other
  })
}

type Secrets = SecretsFile
const keyOf = (secrets: Secrets, secret: Parameters<typeof valueOf>[1]) =>
  Effect.map(valueOf(secrets, secret), (value) => (value === undefined ? "" : Redacted.value(value)))

const setSecret = (name: string | undefined) =>
  name === undefined ? "Add the secret of the service" : `choirctl secret set ${name}`

const trySearch = Effect.fnUntraced(function* (
  { endpoint = SEARCH_ENDPOINT, secret }: Config["search"][keyof Config["search"]],
  secrets: Secrets
) {
  const key = yield* keyOf(secrets, secret)
  const answer = yield* ask(`${endpoint}?q=choir&count=1`, {
    headers: { accept: "application/json", "x-subscription-token": key }
  })
  yield* succeeded(answer, endpoint, key, { key: setSecret(secret), other: "Check endpoint of the entry of search" })
  return "answered one search, which counts as one of the plan"
})

const tryNotion = Effect.fnUntraced(function* (
  { endpoint = NOTION_ENDPOINT, secret }: Config["notion_integrations"][keyof Config["notion_integrations"]],
  secrets: Secrets
) {
  const key = yield* keyOf(secrets, secret)
  const headers = { authorization: `Bearer ${key}`, "notion-version": NOTION_VERSION }
  const answer = yield* ask(`${bare(endpoint)}/v1/users/me`, { headers })
  yield* succeeded(answer, endpoint, key, { key: setSecret(secret), other: "Check endpoint of the integration" })
  return "knows the integration; no page was read"
})

type Profile = Config["voice_profiles"][keyof Config["voice_profiles"]]

const trySpeech = Effect.fnUntraced(function* (profile: Profile, { tts }: Config, secrets: Secrets) {
  const service = tts[profile.tts]
  if (service === undefined) return "names no entry of tts"
  const key = yield* keyOf(secrets, service.secret)
  const url =
    service.provider === "elevenlabs"
      ? `${bare(service.endpoint)}/text-to-speech/${encodeURIComponent(profile.voice_id)}?output_format=${encodeURIComponent(profile.output_format)}`
      : `${bare(service.endpoint)}/audio/speech`
  const eleven = { text: SPOKEN, model_id: service.model_id }
  const [format = ""] = profile.output_format.split("_", 1)
  const openAi = { model: service.model_id, input: SPOKEN, voice: profile.voice_id, response_format: format }
  const known = service.provider === "elevenlabs" ? { "xi-api-key": key } : { authorization: `Bearer ${key}` }
  const answer = yield* ask(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...(key === "" ? {} : known) },
    body: JSON.stringify(service.provider === "elevenlabs" ? eleven : openAi)
  })
  const other = "Check voice_id and output_format of the profile, and model_id and endpoint of its entry of tts"
  yield* succeeded(answer, url, key, { key: setSecret(service.secret), other })
  return `spoke ${SPOKEN.length} characters, which is what it costs`
})

const tryTranscription = Effect.fnUntraced(function* (stt: Config["stt"][keyof Config["stt"]], secrets: Secrets) {
  const key = yield* keyOf(secrets, stt.secret)
  const url = `${bare(stt.endpoint)}/audio/transcriptions`
  const body = new FormData()
  body.set("file", new Blob([SILENCE], { type: "audio/wav" }), "silence.wav")
  body.set("model", stt.model_id)
  body.set("response_format", "json")
  const answer = yield* ask(url, {
    method: "POST",
    body,
    headers: key === "" ? {} : { authorization: `Bearer ${key}` }
  })
  yield* succeeded(answer, url, key, {
    key: setSecret(stt.secret),
    other: "Check model_id and endpoint of the entry of stt"
  })
  return "took a second of silence, which is what it costs"
})

const LOGIN_FIXES: Readonly<Record<LoginFailed["reason"], string>> = {
  unreachable: "Check the host and port of the account, and this machine's network",
  certificate: "Trust its authority on this machine, and start choird with NODE_USE_SYSTEM_CA=1",
  no_tls: "Use a port with TLS: 993 for IMAP, 465 or 587 for SMTP",
  refused: "Check the user and the password of the secret; many providers want a password for apps",
  unknown_answer: "Check the port of the account"
}

const tryLogin = (server: MailServer, user: string, password: string) =>
  Effect.tryPromise({
    try: (signal) => mailLogin(server, user, password, signal),
    catch: (error) => (error instanceof LoginFailed ? error : new LoginFailed("unreachable", "the login failed"))
  }).pipe(
    Effect.timeoutOrElse({
      duration: 2 * MAIL_LOGIN_MS_MAX,
      orElse: () => Effect.fail(new LoginFailed("unreachable", "no answer in time"))
    }),
    Effect.mapError(
      ({ message, reason }) =>
        new CheckFailed({
          obstacle: reason === "refused" ? "key" : "unreachable",
          problem: `${server.host}:${server.port} (${server.protocol.toUpperCase()}): ${message}`,
          fix: LOGIN_FIXES[reason]
        })
    )
  )

const tryMail = Effect.fnUntraced(function* (
  { imap_host, imap_port, secret, smtp_host, smtp_port }: Config["email_accounts"][keyof Config["email_accounts"]],
  secrets: Secrets
) {
  const [, user, password] = /^([^:]+):(.+)$/su.exec(yield* keyOf(secrets, secret)) ?? []
  if (user === undefined || password === undefined)
    return yield* new CheckFailed({
      obstacle: "key",
      problem: "its secret is not user:password",
      fix: setSecret(secret)
    })
  yield* tryLogin({ protocol: "imap", host: imap_host, port: imap_port }, user, password)
  yield* tryLogin({ protocol: "smtp", host: smtp_host, port: smtp_port }, user, password)
  return `${imap_host} (IMAP) and ${smtp_host} (SMTP) let it in; no mail was read or sent`
})

/** Tries every account of config.json that agents may be given. */
export const accountChecks = Effect.fn("accountChecks")(function* (config: Config, secrets: Secrets) {
  const of = (title: string, tried: Effect.Effect<string, CheckFailed>): Effect.Effect<Check> =>
    Effect.match(tried, {
      onFailure: ({ fix, problem }) => check(title, "fail", problem, fix),
      onSuccess: (detail) => check(title, "ok", detail)
    })
  const each = <A>(
    kind: string,
    entries: Readonly<Record<string, A>>,
    tried: (entry: A) => Effect.Effect<string, CheckFailed>
  ) => Object.entries(entries).map(([name, entry]) => of(`${kind} ${name}`, tried(entry)))
  return yield* Effect.all(
    [
      ...each("search", config.search, (entry) => trySearch(entry, secrets)),
      ...each("mail", config.email_accounts, (entry) => tryMail(entry, secrets)),
      ...each("notion", config.notion_integrations, (entry) => tryNotion(entry, secrets)),
      ...each("voice", config.voice_profiles, (entry) => trySpeech(entry, config, secrets)),
      ...each("hearing", config.stt, (entry) => tryTranscription(entry, secrets))
    ],
    { concurrency: ACCOUNTS_AT_ONCE }
  )
})
