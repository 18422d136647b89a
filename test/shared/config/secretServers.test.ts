import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { newServers } from "#src/shared/config/secretServers.ts"

const decode = Schema.decodeUnknownSync(Config)
const configOf = (part: object) => decode({ global_repo: { url: "/srv/global" }, ...part })

const mail = (imap_host: string, smtp_host: string, imap_port = 993) =>
  configOf({
    email_accounts: { personal: { imap_host, imap_port, smtp_host, smtp_port: 465, secret: "mail-password" } }
  })

const git = (...remotes: ReadonlyArray<string>) =>
  configOf({ git_identities: { work: { name: "a", email: "a@example.com", secret: "git-token", remotes } } })

const database = (host: string) => configOf({ postgres: { host, database: "choir", secret: "database-password" } })

describe("the servers that a change sends a secret to", () => {
  it("are named for a mail account, of which either server may be another one", () => {
    const before = mail("imap.example", "smtp.example")
    assert.deepStrictEqual(newServers(before, before), [])
    for (const after of [
      mail("imap.evil.example", "smtp.example"),
      mail("imap.example", "smtp.evil.example"),
      mail("imap.example", "smtp.example", 1993)
    ]) {
      const [found, ...more] = newServers(before, after)
      assert.deepStrictEqual(more, [])
      assert.strictEqual(found?.path, "email_accounts.personal.secret")
      assert.match(found?.message ?? "", /would go to \S+, which does not get it today; it goes to imap\.example:993 /u)
    }
  })

  it("are named for the remotes of a git identity, and for the host of a database", () => {
    const before = git("https://git.example/team")
    const after = git("https://git.example/team", "https://evil.example/")
    assert.deepStrictEqual(
      newServers(before, after).map(({ message }) => message.split(",")[0]),
      ['the secret "git-token" would go to https://evil.example/']
    )
    assert.deepStrictEqual(newServers(after, before), [])
    assert.lengthOf(newServers(database("db.example"), database("evil.example")), 1)
    assert.deepStrictEqual(newServers(database("db.example"), database("db.example")), [])
  })
})
