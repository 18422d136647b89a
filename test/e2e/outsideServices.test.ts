/**
 * Each outside service of a whole Choir with nothing of Choir replaced: agents and choird ask the names of config.json's own defaults over TLS, which
 * a private authority signed and the host's store knows. What answers behind the names are the doubles and real servers of the other tests.
 */
import { spawn } from "node:child_process"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { assert, describe, layer } from "@effect/vitest"
import { Context, Effect, Layer, Schema } from "effect"
import type { SessionId } from "#schema/Ids.ts"
import { AUDIO_KEY, elevenLabsServer, openAiAudioServer, wordsOf } from "../support/audioServers.ts"
import { BRAVE_KEY, braveServer } from "../support/braveServer.ts"
import { makeAuthority } from "../support/certificate.ts"
import { MAIN, type Ran } from "../support/choirctl.ts"
import { putDatabase, temporaryFolder } from "../support/engines.ts"
import { makeRemoteRepo, newestCommit, startGitHttps, startSshd } from "../support/gitServers.ts"
import { makeInstallation } from "../support/installation.ts"
import { MAIL_DOMAIN, MAIL_PASSWORD, mailServerWith, noMail } from "../support/mailServer.ts"
import { NOTION_TOKEN, notionServer } from "../support/notionServer.ts"
import { type Families, noOutsideNetwork, outsideNetwork } from "../support/outside/outsideNetwork.ts"
import { ensureDebianPackages } from "../support/packages.ts"
import { LAYER_MS_MAX, SIZE } from "../support/size.ts"
import { answer, callTools, makeProvider, offlineModel } from "../support/testing/Provider.ts"
import { makeTelegram } from "../support/testing/Telegram.ts"

const USER = 4711
const TOKEN = "1000:secret"
const HOME = "a".repeat(32)
const OPUS = Buffer.from(`OggS${"\0".repeat(24)}OpusHead and a question`, "latin1")
const MODEL_KEY = "sk-key-of-tests"
const GIT_TOKEN = "git-token-of-tests"

const HOSTS = [
  "api.openai.com",
  "api.telegram.org",
  "api.search.brave.com",
  "api.notion.com",
  "api.elevenlabs.io",
  "hear.example",
  "mail.example",
  "git.example",
  "example.com"
] as const

const portOf = (url: string) => Number(new URL(url).port)
const tls = (url: string) => [{ port: 443, tls: true, to: portOf(url) }]
const plain = (...ports: ReadonlyArray<readonly [port: number, to: number]>) =>
  ports.map(([port, to]) => ({ port, tls: false, to }))

const page = Effect.acquireRelease(
  Effect.callback<string>((resume) => {
    const server = createServer((_, response) => {
      response
        .writeHead(200, { "content-type": "text/html" })
        .end("<title>Example</title><p>This page is for tests of such kind, and has some words.</p>")
    })
    server.listen(0, "127.0.0.1", () =>
      resume(Effect.succeed(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
    )
  }),
  () => Effect.void
)

const rig = Effect.fnUntraced(function* (families: Families) {
  const authority = yield* makeAuthority(HOSTS)
  const provider = yield* makeProvider
  yield* provider.otherwise((request) => offlineModel(request, 0))
  const telegram = yield* makeTelegram
  const bot = telegram.bot(TOKEN)
  const search = yield* braveServer([{ title: "Tea", url: "https://tea.example/", description: "all about tea" }])
  const notion = yield* notionServer([{ id: HOME, title: "Home", children: [] }])
  const voice = yield* elevenLabsServer()
  const ears = yield* openAiAudioServer()
  const mail = yield* mailServerWith(authority)
  mail.deliver("ada", [`From: eve@evil.example\r\nTo: ada@${MAIL_DOMAIN}\r\nSubject: news\r\n\r\nhello\r\n`])
  const root = yield* temporaryFolder
  const [overHttps, overSsh] = [makeRemoteRepo(root, "app.git"), makeRemoteRepo(yield* temporaryFolder, "tool.git")]
  const https = yield* startGitHttps({ root, user: "bot", password: GIT_TOKEN, certificate: authority })
  const sshd = yield* startSshd()
  const network = yield* outsideNetwork({
    authority,
    families,
    hosts: {
      "api.openai.com": tls(provider.endpoint),
      "api.telegram.org": tls(telegram.url),
      "api.search.brave.com": tls(search.origin),
      "api.notion.com": tls(notion.origin),
      "api.elevenlabs.io": tls(voice.origin),
      "hear.example": tls(ears.origin),
      "mail.example": plain([143, mail.imap_port], [587, mail.smtp_port]),
      "git.example": plain([443, portOf(`https://${https.host}`)], [22, sshd.port]),
      "example.com": tls(yield* page)
    }
  })
  const mailAccount = { smtp_host: "mail.example", smtp_port: 587, imap_host: "mail.example", imap_port: 143 }
  const choir = yield* makeInstallation({
    endpoint: "https://api.openai.com/v1",
    runtime: "sandbox",
    database: putDatabase,
    within: network.within,
    env: network.env,
    secrets: {
      model: MODEL_KEY,
      "bot-token": TOKEN,
      brave: BRAVE_KEY,
      notion: NOTION_TOKEN,
      audio: AUDIO_KEY,
      mail: `ada@${MAIL_DOMAIN}:${MAIL_PASSWORD}`,
      forge: `bot:${GIT_TOKEN}`,
      shell: sshd.key
    },
    config: ({ endpoint, home }) => ({
      crash_detection_threshold_ms: 120_000,
      models: { test: { provider: "test", model: "offline-model", endpoint, temperature: 0, secret: "model" } },
      // Of each service that has an address of its own in Choir, config.json names none.
      gateways: { terminal: { type: "console" }, bot: { type: "telegram", secret: "bot-token" } },
      dms: {
        me: { gateway: "terminal", user_id: "local", admin: true },
        phone: { gateway: "bot", user_id: String(USER) }
      },
      search: { web: { secret: "brave" } },
      notion_integrations: { notes: { secret: "notion" } },
      email_accounts: { post: { ...mailAccount, address: `ada@${MAIL_DOMAIN}`, secret: "mail", recipients: "any" } },
      tts: {
        mouth: {
          provider: "elevenlabs",
          model_id: "eleven_v3",
          endpoint: "https://api.elevenlabs.io/v1",
          secret: "audio"
        }
      },
      stt: {
        ears: { provider: "openai", model_id: "whisper-1", endpoint: "https://hear.example/v1", secret: "audio" }
      },
      voice_profiles: { calm: { tts: "mouth", voice_id: "calm-voice", output_format: "opus_48000_64" } },
      git_identities: {
        forge: { name: "Ada", email: "ada@example.org", secret: "forge", remotes: ["https://git.example/app.git"] },
        shell: {
          name: "Ada",
          email: "ada@example.org",
          secret: "shell",
          remotes: ["ssh://root@git.example"],
          known_hosts: sshd.known_hosts.map((line) => line.replace(/^\S+/u, "git.example"))
        }
      },
      agents: {
        demo: {
          repo: { url: join(home, "sources/agent") },
          defaults: {
            workspace: "main",
            llm: "test",
            notion: "notes",
            email: "post",
            voice_profile: "calm",
            git_identity: "forge",
            dm: ["me", "phone"]
          }
        }
      }
    })
  })
  yield* choir.start
  yield* choir.build
  const { session_id } = yield* choir.api.agents.start({ params: choir.params, payload: {} })
  let messages = 0
  /** The results of these calls of the model, in one turn. */
  const calls = Effect.fnUntraced(function* (
    ...wanted: ReadonlyArray<readonly [name: string, input: Readonly<Record<string, Schema.Json>>]>
  ) {
    const before = (yield* choir.events(session_id as SessionId)).length
    yield* provider.script(callTools(wanted.map(([name, input]) => ({ name, input }))), answer("done"))
    const { inbox_id } = yield* choir.send(`m-${messages++}`, "go on")
    yield* choir.settled(inbox_id)
    return (yield* choir.events(session_id as SessionId))
      .slice(before)
      .flatMap(({ event }) => (event.event_type === "ToolResultCommitted" ? [event.payload] : []))
  })
  /** choirctl as a process of the host. */
  const choirctl = (...args: ReadonlyArray<string>) =>
    Effect.callback<Ran>((resume) => {
      const [first = "", ...rest] = [...network.within, process.execPath, MAIN, "--home", choir.home, ...args]
      const child = spawn(first, rest, { env: { ...process.env, ...network.env }, stdio: ["ignore", "pipe", "pipe"] })
      let [out, err] = ["", ""]
      child.stdout.setEncoding("utf8").on("data", (part: string) => (out += part))
      child.stderr.setEncoding("utf8").on("data", (part: string) => (err += part))
      child.once("close", (code) => resume(Effect.succeed({ code: code ?? -1, out, err })))
      return Effect.sync(() => child.kill("SIGKILL"))
    })
  return { bot, calls, choirctl, ears, mail, network, notion, overHttps, overSsh, provider, search, sshd, voice }
})

class Rig extends Context.Service<Rig, Effect.Success<ReturnType<typeof rig>>>()("choir/test/OutsideServices") {}

const Checks = Schema.fromJsonString(
  Schema.Struct({
    checks: Schema.Array(
      Schema.Struct({
        name: Schema.String,
        status: Schema.String,
        detail: Schema.String,
        fix: Schema.optionalKey(Schema.String)
      })
    )
  })
)

/** Clones, commits and pushes. */
const work = (url: string, folder: string) =>
  `git clone -q ${url} ${folder} && cd ${folder} && echo more >> README && git commit -qam second && git push -q origin main`

const SECRETS = [MODEL_KEY, TOKEN, BRAVE_KEY, NOTION_TOKEN, AUDIO_KEY, MAIL_PASSWORD, GIT_TOKEN]
const SUITE = "outside services with nothing of Choir replaced"
const leftOut =
  noMail ?? noOutsideNetwork(SUITE) ?? ensureDebianPackages(["bubblewrap", "chromium", "openssh-server"], SUITE)

describe.skipIf(leftOut !== undefined).each(SIZE.outsideFamilies)(
  "outside services by their own names, over TLS of a private authority, from a host with %s",
  (families) => {
    layer(Layer.effect(Rig, rig(families)), { excludeTestServices: true, timeout: LAYER_MS_MAX })((it) => {
      it.effect("are each tried by doctor, which says what it tried and shows no secret", () =>
        Effect.gen(function* () {
          const { choirctl, ears, mail, notion, search, voice } = yield* Rig
          const ran = yield* choirctl("doctor", "--json")
          const { checks } = yield* Schema.decodeUnknownEffect(Checks)(ran.out)
          const of = (name: string) => {
            const { detail, fix, status } =
              checks.find((each) => each.name === name) ?? assert.fail(`${name} in ${ran.out}${ran.err}`)
            return `${status}: ${detail}${fix === undefined ? "" : `; ${fix}`}`
          }
          assert.match(of("model test"), /^ok: offline-model called a tool/u)
          assert.match(of("gateway bot"), /^ok: @/u)
          assert.strictEqual(of("search web"), "ok: answered one search, which counts as one of the plan")
          assert.strictEqual(
            of("mail post"),
            "ok: mail.example (IMAP) and mail.example (SMTP) let it in; no mail was read or sent"
          )
          assert.strictEqual(of("notion notes"), "ok: knows the integration; no page was read")
          assert.strictEqual(of("voice calm"), "ok: spoke 3 characters, which is what it costs")
          assert.strictEqual(of("hearing ears"), "ok: took a second of silence, which is what it costs")
          assert.strictEqual(
            of("git forge"),
            "ok: https://git.example/app.git can be read; nothing was fetched or pushed"
          )
          assert.match(of("git shell"), /^ok: the server at ssh:\/\/root@git\.example\/choir answers/u)
          assert.strictEqual(of("page"), "ok: https://example.com/ was fetched")
          // A browser takes its time on a busy machine, which doctor says.
          const inBrowser = /^(?:ok: .* was opened|warn: .*did not (?:end within 60000 ms|respond in time))/u
          assert.match(of("page in a browser"), inBrowser)
          for (const secret of SECRETS) assert.notInclude(ran.out + ran.err, secret)
          assert.deepStrictEqual(
            [search.asked.length, notion.asked.length, voice.asked.length, ears.asked.length],
            [1, 1, 1, 1]
          )
          assert.lengthOf(mail.files("ada"), 1)
        })
      )

      it.effect("serve a person at Telegram, who is heard and answered by a provider", () =>
        Effect.gen(function* () {
          const { bot, ears, provider } = yield* Rig
          yield* provider.script(answer("hello from afar"), answer("I heard you"))
          yield* bot.text(USER, "hello")
          yield* bot.sent.first(({ text }) => text === "hello from afar")
          yield* bot.file(USER, "voice", { name: "v.ogg", mime: "audio/ogg", bytes: OPUS })
          yield* bot.sent.first(({ text }) => text === "I heard you")
          assert.include(JSON.stringify((yield* provider.requests.all).at(-1)?.body), wordsOf(OPUS))
          assert.isAbove(ears.asked.length, 0)
        })
      )

      it.effect("take a commit of the agent over https", () =>
        Effect.gen(function* () {
          const { calls, overHttps } = yield* Rig
          const [first] = yield* calls([
            "choir-exec",
            { command: work("https://git.example/app.git", "app"), network: true }
          ])
          assert.strictEqual(first?.status, "success", JSON.stringify(first))
          assert.strictEqual(newestCommit(overHttps), "Ada <ada@example.org> / Ada <ada@example.org>: second")
        })
      )

      it.effect("take a commit of the agent over ssh", () =>
        Effect.gen(function* () {
          const { calls, choirctl, overSsh, sshd } = yield* Rig
          const restarted = yield* choirctl("agent", "restart", "demo", "--git-identity", "shell", "--json")
          assert.strictEqual(restarted.code, 0, restarted.err + restarted.out)
          const [second] = yield* calls([
            "choir-exec",
            { command: work(`ssh://root@git.example${overSsh}`, "tool"), network: true }
          ])
          assert.strictEqual(second?.status, "success", `${JSON.stringify(second)}\n${sshd.said()}`)
          assert.strictEqual(newestCommit(overSsh), "Ada <ada@example.org> / Ada <ada@example.org>: second")
        })
      )

      it.effect("search, keep notes, send and read mail, and speak, and nobody else is asked for anything", () =>
        Effect.gen(function* () {
          const { calls, mail, network, notion, search, voice } = yield* Rig
          const results = yield* calls(
            ["choir-web-search", { query: "tea" }],
            ["choir-notion-query", { action: "create", parent: HOME, title: "Trip", markdown: "words" }],
            ["choir-email-check", {}],
            ["choir-email-send", { to: [`bob@${MAIL_DOMAIN}`], subject: "hello", text: "from ada" }],
            ["choir-tts-speak", { text: "Good morning" }]
          )
          assert.lengthOf(results, 5)
          for (const result of results) assert.strictEqual(result.status, "success", JSON.stringify(result))
          assert.sameMembers(
            results.flatMap(({ acted }) => acted ?? []),
            ["verified", "accepted"]
          )
          yield* mail.idle
          assert.lengthOf(mail.files("bob"), 1)
          for (const { asked } of [search, notion, voice]) assert.isAbove(asked.length, 1)
          const { asked, trapped } = yield* network.seen
          assert.deepStrictEqual(trapped, [])
          assert.sameMembers([...asked], [...HOSTS])
        })
      )
    })
  }
)
