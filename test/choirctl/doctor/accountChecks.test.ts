import { createServer } from "node:net"
import type { AddressInfo } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { SecretName } from "#schema/Ids.ts"
import type { SecretsFile } from "#schema/Secrets.ts"
import { accountChecks } from "#src/choirctl/doctor/accountChecks.ts"
import { AUDIO_KEY, elevenLabsServer, openAiAudioServer } from "../../support/audioServers.ts"
import { BRAVE_KEY, braveServer } from "../../support/braveServer.ts"
import { MAIL_DOMAIN, MAIL_PASSWORD, mailServer, noMail } from "../../support/mailServer.ts"
import { NOTION_TOKEN, notionServer } from "../../support/notionServer.ts"
import { lanAddress } from "../../support/reachable.ts"
import { CONFIG } from "../../support/stores.ts"

/** What doctor prints of the accounts of a part of config.json, with these values of their secrets. */
const checked = (part: object, values: Readonly<Record<string, string>>) => {
  const secrets: SecretsFile = Object.fromEntries(
    Object.entries(values).map(([name, value]) => [SecretName.make(name), Redacted.make(value)])
  )
  return Effect.map(accountChecks(Schema.decodeUnknownSync(Config)({ ...CONFIG, ...part }), secrets), (checks) =>
    checks.map(({ detail, fix = "", name, status }) => `${status} ${name}: ${detail}${fix === "" ? "" : `; ${fix}`}`)
  )
}

describe("the accounts that doctor tries", () => {
  it.live("work, each by one small request that says what it costs", () =>
    Effect.gen(function* () {
      const search = yield* braveServer([])
      const notion = yield* notionServer([])
      const [eleven, openAi] = [yield* elevenLabsServer(), yield* openAiAudioServer()]
      const part = {
        search: { web: { secret: "brave", endpoint: `${search.origin}/res/v1/web/search` } },
        notion_integrations: { notes: { secret: "notion", endpoint: notion.origin } },
        tts: {
          mouth: { provider: "elevenlabs", model_id: "eleven_v3", endpoint: `${eleven.origin}/v1`, secret: "audio" },
          other: { provider: "openai", model_id: "tts-1", endpoint: `${openAi.origin}/v1`, secret: "audio" }
        },
        voice_profiles: {
          calm: { tts: "mouth", voice_id: "calm-voice", output_format: "opus_48000_64" },
          bright: { tts: "other", voice_id: "nova", output_format: "opus_48000_64" }
        },
        stt: { ears: { provider: "openai", model_id: "whisper-1", endpoint: `${openAi.origin}/v1`, secret: "audio" } }
      }
      const right = { brave: BRAVE_KEY, notion: NOTION_TOKEN, audio: AUDIO_KEY }
      assert.deepStrictEqual(yield* checked(part, right), [
        "ok search web: answered one search, which counts as one of the plan",
        "ok notion notes: knows the integration; no page was read",
        "ok voice calm: spoke 3 characters, which is what it costs",
        "ok voice bright: spoke 3 characters, which is what it costs",
        "ok hearing ears: took a second of silence, which is what it costs"
      ])
      assert.deepStrictEqual(
        [search, notion, eleven, openAi].map(({ asked }) => asked.length),
        [1, 1, 1, 2]
      )
      const wrong = yield* checked(part, { brave: "wrong-brave", notion: "wrong-notion", audio: "wrong-audio" })
      for (const [n, secret] of ["brave", "notion", "audio", "audio", "audio"].entries()) {
        assert.match(wrong[n] ?? "", /^fail .*127\.0\.0\.1:\d+ refuses the key \((?:401|422)\)/u)
        assert.isTrue(wrong[n]?.endsWith(`choirctl secret set ${secret}`), wrong[n])
        assert.notInclude(wrong[n], "wrong-")
      }
      const lost = { ...part, voice_profiles: { calm: { ...part.voice_profiles.calm, voice_id: "nobody" } } }
      assert.match((yield* checked(lost, right))[2] ?? "", /^fail voice calm: .*\(404\).*Check voice_id/u)
      assert.match(
        (yield* checked(part, { ...right, brave: "" }))[0] ?? "",
        /^fail search web: its secret "brave" has no value/u
      )
    }).pipe(Effect.scoped)
  )

  it.live.skipIf(noMail !== undefined)("log in at both servers of a mail account, and read and send nothing", () =>
    Effect.gen(function* () {
      const { deliver, files, imap_port, smtp_port } = yield* mailServer
      deliver("ada", ["Subject: news\r\n\r\nhello\r\n"])
      const hosts = { smtp_host: "127.0.0.1", smtp_port, imap_host: "127.0.0.1", imap_port }
      const part = { email_accounts: { post: { ...hosts, secret: "mail" } } }
      const user = `ada@${MAIL_DOMAIN}`
      assert.deepStrictEqual(yield* checked(part, { mail: `${user}:${MAIL_PASSWORD}` }), [
        "ok mail post: 127.0.0.1 (IMAP) and 127.0.0.1 (SMTP) let it in; no mail was read or sent"
      ])
      const [refused = ""] = yield* checked(part, { mail: `${user}:wrong-password` })
      assert.match(
        refused,
        /^fail mail post: 127\.0\.0\.1:\d+ \(IMAP\): the server refuses the user or the password; Check the user/u
      )
      assert.notInclude(refused, "wrong-password")
      assert.deepStrictEqual(yield* checked(part, { mail: "no colon" }), [
        "fail mail post: its secret is not user:password; choirctl secret set mail"
      ])
      assert.lengthOf(files("ada"), 1)
    }).pipe(Effect.scoped)
  )

  it.live("send no password to a mail server without TLS, unless it is this machine", () =>
    Effect.gen(function* () {
      const said: Array<string> = []
      const port = yield* Effect.acquireRelease(
        Effect.callback<ReturnType<typeof createServer>>((resume) => {
          const server = createServer((socket) => {
            socket.on("error", () => undefined).write("* OK hello\r\n")
            socket.on("data", (bytes: Buffer) => {
              said.push(bytes.toString())
              socket.write("* CAPABILITY IMAP4rev1 AUTH=PLAIN\r\na OK done\r\n")
            })
          })
          server.listen(0, lanAddress(), () => resume(Effect.succeed(server)))
        }),
        (server) => Effect.sync(() => server.close())
      ).pipe(Effect.map((server) => (server.address() as AddressInfo).port))
      const hosts = { smtp_host: lanAddress(), smtp_port: port, imap_host: lanAddress(), imap_port: port }
      const [found = ""] = yield* checked(
        { email_accounts: { post: { ...hosts, secret: "mail" } } },
        { mail: "ada:hunter2" }
      )
      assert.match(found, /^fail mail post: .*offers no TLS on this port/u)
      assert.deepStrictEqual(said, ["a CAPABILITY\r\n"])
    }).pipe(Effect.scoped)
  )
})
