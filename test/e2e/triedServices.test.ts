/** Tools and accounts that an operator checks by one command each, with real containers, a real mail server, and doubles of Notion and of a voice. */
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { AUDIO_KEY, openAiAudioServer } from "../support/audioServers.ts"
import { choirctl, document } from "../support/choirctl.ts"
import { temporaryFolder } from "../support/engines.ts"
import { makeInstallation } from "../support/installation.ts"
import { makeTestInstallation } from "../support/testInstallation.ts"
import { MAIL_DOMAIN, MAIL_PASSWORD, type MailServer, noMail, mailServer } from "../support/mailServer.ts"
import { NOTION_TOKEN, notionServer } from "../support/notionServer.ts"
import { leaveOut } from "../support/packages.ts"
import { LAYER_MS_MAX } from "../support/size.ts"
import { makeProvider, offlineModel } from "../support/testing/Provider.ts"

const HOME = "a".repeat(32)
const GIT_TOKEN = "git-token-of-tests"
const SECRETS = [MAIL_PASSWORD, NOTION_TOKEN, AUDIO_KEY, GIT_TOKEN]
const CREDENTIALS = `printf "protocol=https\\nhost=git.example.org\\npath=x\\n" | GIT_TERMINAL_PROMPT=0 git credential fill`

const accountAt = ({ imap_port, smtp_port }: MailServer) => ({
  smtp_host: "127.0.0.1",
  smtp_port,
  imap_host: "127.0.0.1",
  imap_port,
  address: `ada@${MAIL_DOMAIN}`,
  secret: "mail"
})

/** One try by the command line, whose words have no secret. */
const trying = (home: string) =>
  Effect.fnUntraced(function* (tool: string, input: object) {
    const ran = yield* choirctl(home, ["tool", "try", tool, "--input", JSON.stringify(input), "--yes", "--json"])
    for (const secret of SECRETS) assert.notInclude(ran.out + ran.err, secret)
    return { ...ran, tried: document(ran) as Readonly<Record<string, unknown>> }
  })

/** An agent with accounts whose mailbox has two mails of one sender. @param more further bindings of the agent. */
const setUp = Effect.fnUntraced(function* (mail: MailServer, more: Readonly<Record<string, string>>) {
  const provider = yield* makeProvider
  yield* provider.otherwise((request) => offlineModel(request, 0))
  const notion = yield* notionServer([{ id: HOME, title: "Home", children: [] }])
  const audio = yield* openAiAudioServer()
  mail.deliver("ada", [
    `From: Eve <eve@evil.example>\r\nTo: ada@${MAIL_DOMAIN}\r\nSubject: earlier\r\n\r\nfirst\r\n`,
    `From: eve@evil.example\r\nTo: ada@${MAIL_DOMAIN}\r\nSubject: news\r\n\r\nhello\r\n`
  ])
  const choir = yield* makeTestInstallation({
    endpoint: provider.endpoint,
    runtime: "sandbox",
    secrets: { mail: `ada@${MAIL_DOMAIN}:${MAIL_PASSWORD}`, notion: NOTION_TOKEN, audio: AUDIO_KEY, git: GIT_TOKEN },
    config: ({ home }) => ({
      notion_integrations: { notes: { secret: "notion", endpoint: notion.origin } },
      email_accounts: { post: accountAt(mail) },
      tts: { mouth: { provider: "openai", endpoint: `${audio.origin}/v1`, secret: "audio", model_id: "tts-1" } },
      voice_profiles: { calm: { tts: "mouth", voice_id: "nova", output_format: "opus_48000_64" } },
      git_identities: {
        ada: { name: "Ada", email: "ada@example.org", secret: "git", remotes: ["https://git.example.org/"] }
      },
      agents: {
        demo: {
          repo: { url: join(home, "sources/agent") },
          defaults: { workspace: "main", llm: "test", dm: "me", notion: "notes", email: "post", ...more }
        }
      }
    })
  })
  yield* choir.start
  yield* choir.build
  return { ...choir, attempt: trying(choir.home) }
})

/** What each account gives, whatever else the agent is bound to. */
const triesAccounts = Effect.fnUntraced(function* (attempt: ReturnType<typeof trying>, mail: MailServer) {
  const sources = ["mail:eve@evil.example"]
  const checked = yield* attempt("choir.email.check", {})
  assert.deepInclude(checked.tried, { status: "success", effect: "none", summary: "2 unread", sources })
  const listed = yield* attempt("choir.email.receive", {})
  assert.deepInclude(listed.tried, { status: "success", summary: "2 mail(s)", sources })
  const read = yield* attempt("choir.email.receive", { uid: 1 })
  assert.deepInclude(read.tried, { status: "success", sources })
  const letter = { to: [`bob@${MAIL_DOMAIN}`], subject: "hello", text: "from ada" }
  const sent = yield* attempt("choir.email.send", letter)
  assert.deepInclude(sent.tried, { effect: "external", acted: "accepted" })
  yield* mail.idle
  assert.lengthOf(mail.files("bob"), 1)
  const page = yield* attempt("choir.notion.query", { action: "create", parent: HOME, title: "t", markdown: "m" })
  assert.deepInclude(page.tried, { effect: "external", acted: "verified" })
})

/** Runs choird where the system has no git, as in many an image. */
const withoutGit = (place: string) => [
  "unshare",
  "--mount",
  "sh",
  "-c",
  `set -e
mount -t tmpfs choir-tests '${place}'
mkdir '${place}/upper' '${place}/work'
mknod '${place}/upper/git' c 0 0
mount -t overlay choir-tests -o 'lowerdir=/usr/bin,upperdir=${place}/upper,workdir=${place}/work' /usr/bin
exec "$@"`,
  "sh"
]

const whyGitStays = (): string | undefined => {
  const [program = "", ...args] = withoutGit("/mnt")
  const { status, stderr } = spawnSync(program, [...args, "sh", "-c", "! command -v git"], { encoding: "utf8" })
  return status === 0 ? undefined : leaveOut("a tool that is tried without git", stderr.trim() || "git stays")
}

describe.skipIf(noMail !== undefined)("choirctl tool try", () => {
  it.live(
    "checks the accounts of an agent without a voice and a git identity, with the source of what they answer and how sure they acted",
    () =>
      Effect.gen(function* () {
        const mail = yield* mailServer
        const { attempt } = yield* setUp(mail, {})
        yield* triesAccounts(attempt, mail)
        const spoken = yield* attempt("choir.tts.speak", { text: "hello" })
        assert.strictEqual(spoken.code, 1)
        assert.include(JSON.stringify(spoken.tried), "bound to no voice profile")
        const filled = yield* attempt("choir.exec", { command: CREDENTIALS })
        assert.deepInclude(filled.tried, { status: "error", summary: "exit code 128" })
        assert.deepInclude((yield* attempt("choir.exec", { command: "echo hello" })).tried, { status: "success" })
      }).pipe(Effect.scoped),
    LAYER_MS_MAX
  )

  it.live(
    "checks the same accounts of an agent with both, which speaks and has its credentials",
    () =>
      Effect.gen(function* () {
        const mail = yield* mailServer
        const { attempt } = yield* setUp(mail, { voice_profile: "calm", git_identity: "ada" })
        yield* triesAccounts(attempt, mail)
        const spoken = yield* attempt("choir.tts.speak", { text: "hello" })
        assert.deepInclude(spoken.tried, { status: "success" }, spoken.out + spoken.err)
        const filled = yield* attempt("choir.exec", { command: CREDENTIALS })
        assert.deepInclude(filled.tried, { status: "success" }, filled.out + filled.err)
        assert.include(filled.out, "password=<redacted>")
      }).pipe(Effect.scoped),
    LAYER_MS_MAX
  )
})

describe.skipIf(whyGitStays() !== undefined)("choirctl tool try choir.exec, without git", () => {
  it.live(
    "runs commands, and says of git what the shell says",
    () =>
      Effect.gen(function* () {
        const provider = yield* makeProvider
        yield* provider.otherwise((request) => offlineModel(request, 0))
        const options = {
          endpoint: provider.endpoint,
          runtime: "sandbox",
          secrets: { git: GIT_TOKEN },
          config: ({ home }: { readonly home: string }) => ({
            git_identities: { ada: { name: "Ada", email: "ada@example.org", secret: "git" } },
            agents: {
              demo: {
                repo: { url: join(home, "sources/agent") },
                defaults: { workspace: "main", llm: "test", dm: "me", git_identity: "ada" }
              }
            }
          })
        } as const
        const built = yield* makeTestInstallation(options)
        const first = yield* built.start
        yield* built.build
        yield* first.signal("SIGTERM")
        yield* first.exited
        const bare = yield* makeInstallation({
          ...options,
          home: built.home,
          within: withoutGit(yield* temporaryFolder)
        })
        yield* bare.start
        const attempt = trying(built.home)
        const ran = yield* attempt("choir.exec", { command: "echo hello" })
        assert.deepInclude(ran.tried, { status: "success", summary: "exit code 0" }, ran.out + ran.err)
        const missing = yield* attempt("choir.exec", { command: "git status" })
        assert.deepInclude(missing.tried, { status: "error", summary: "exit code 127" }, missing.out + missing.err)
        assert.match(missing.out, /git: (?:command )?not found/u)
      }).pipe(Effect.scoped),
    LAYER_MS_MAX
  )
})
