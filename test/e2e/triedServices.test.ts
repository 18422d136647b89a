/** Accounts and integrations that an operator checks by one command each, with real containers, a real mail server and Notion's double. */
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { choirctl, document } from "../support/choirctl.ts"
import { makeTestInstallation } from "../support/testInstallation.ts"
import { MAIL_DOMAIN, MAIL_PASSWORD, noMail, mailServer } from "../support/mailServer.ts"
import { NOTION_TOKEN, notionServer } from "../support/notionServer.ts"
import { LAYER_MS_MAX } from "../support/size.ts"
import { makeProvider, offlineModel } from "../support/testing/Provider.ts"

const HOME = "a".repeat(32)

describe.skipIf(noMail !== undefined)("choirctl tool try", () => {
  it.live(
    "checks a mail account and a Notion integration, with the source of what they answer and how sure they acted",
    () =>
      Effect.gen(function* () {
        const provider = yield* makeProvider
        yield* provider.otherwise((request) => offlineModel(request, 0))
        const notion = yield* notionServer([{ id: HOME, title: "Home", children: [] }])
        const mail = yield* mailServer
        mail.deliver("ada", [
          `From: Eve <eve@evil.example>\r\nTo: ada@${MAIL_DOMAIN}\r\nSubject: earlier\r\n\r\nfirst\r\n`,
          `From: eve@evil.example\r\nTo: ada@${MAIL_DOMAIN}\r\nSubject: news\r\n\r\nhello\r\n`
        ])
        const choir = yield* makeTestInstallation({
          endpoint: provider.endpoint,
          runtime: "sandbox",
          secrets: { mail: `ada@${MAIL_DOMAIN}:${MAIL_PASSWORD}`, notion: NOTION_TOKEN },
          config: ({ home }) => ({
            notion_integrations: { notes: { secret: "notion", endpoint: notion.origin } },
            email_accounts: {
              post: {
                smtp_host: "127.0.0.1",
                smtp_port: mail.smtp_port,
                imap_host: "127.0.0.1",
                imap_port: mail.imap_port,
                address: `ada@${MAIL_DOMAIN}`,
                secret: "mail"
              }
            },
            agents: {
              demo: {
                repo: { url: join(home, "sources/agent") },
                defaults: { workspace: "main", llm: "test", dm: "me", notion: "notes", email: "post" }
              }
            }
          })
        })
        yield* choir.start
        yield* choir.build
        const tried = Effect.fnUntraced(function* (tool: string, input: object) {
          const args = ["tool", "try", tool, "--input", JSON.stringify(input), "--yes", "--json"]
          const ran = yield* choirctl(choir.home, args)
          assert.strictEqual(ran.code, 0, ran.out + ran.err)
          for (const secret of [MAIL_PASSWORD, NOTION_TOKEN]) assert.notInclude(ran.out + ran.err, secret)
          return document(ran)
        })
        assert.deepInclude(yield* tried("choir.email.check", {}), {
          status: "success",
          effect: "none",
          sources: ["mail:eve@evil.example"]
        })
        assert.deepInclude(yield* tried("choir.email.receive", { uid: 1 }), { sources: ["mail:eve@evil.example"] })
        const letter = { to: [`bob@${MAIL_DOMAIN}`], subject: "hello", text: "from ada" }
        assert.deepInclude(yield* tried("choir.email.send", letter), { effect: "external", acted: "accepted" })
        yield* mail.idle
        assert.lengthOf(mail.files("bob"), 1)
        assert.deepInclude(
          yield* tried("choir.notion.query", { action: "create", parent: HOME, title: "t", markdown: "m" }),
          { effect: "external", acted: "verified" }
        )
      }).pipe(Effect.scoped),
    LAYER_MS_MAX
  )
})
