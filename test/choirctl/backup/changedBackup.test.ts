import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { makeArchive } from "#src/choirctl/backup/ArchiveWriter.ts"
import {
  ARCHIVE_FORMAT,
  bound,
  CONFIG,
  FORMAT,
  MANIFEST,
  type Manifest,
  SECRETS
} from "#src/choirctl/backup/manifest.ts"
import { seal } from "#src/choirctl/backup/sealedSecrets.ts"
import { choirctl, document } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"

const PASSPHRASE = "correct horse battery"
const HOME = "/srv/choir"
const AT = new Date(0)
const FILE = "workspaces/main/a.txt"
/** Cheap, so that many restores take no time. */
const COST = { n: 2 ** 14, r: 8, p: 1 }

const config = {
  global_repo: { url: `${HOME}/sources/global` },
  postgres: { url_secret: "postgres-url" },
  workspaces: { main: { path: `${HOME}/workspaces/main` } }
}

/** The parts of a file that its owner sealed, or that somebody else puts in their place. */
interface Parts {
  readonly config: object
  readonly text: string
  readonly mode: number
  readonly more: ReadonlyArray<string>
  readonly manifest: Partial<Manifest>
  readonly seal: (sealed: string) => string | undefined
}

const MADE: Parts = { config, text: "hello", mode: 0o600, more: [], manifest: {}, seal: (sealed) => sealed }

const writeParts = Effect.fnUntraced(function* (file: string, parts: Parts, sealed: string | undefined) {
  const archive = yield* makeArchive(file)
  yield* archive.text(FORMAT, JSON.stringify({ format: ARCHIVE_FORMAT, choir: "0.1.0" }), AT)
  yield* archive.text(CONFIG, JSON.stringify(parts.config), AT)
  yield* archive.text("database.gz", "dump", AT)
  yield* archive.text(FILE, parts.text, AT, parts.mode)
  for (const name of parts.more) yield* archive.text(name, "#!/bin/sh\n", AT, 0o6755)
  const manifest = (): Manifest => ({
    format: ARCHIVE_FORMAT,
    choir: "0.1.0",
    created_at: "2026-01-01T00:00:00.000Z",
    home: HOME,
    real_home: HOME,
    database: { engine: "postgres", sessions: 0, events: 0 },
    secrets: { names: ["key" as never], sealed: sealed !== undefined, values: true },
    sources: [],
    workspaces: [],
    left_out: [],
    members: archive.members().filter(({ name }) => name !== FORMAT),
    ...parts.manifest
  })
  const bare = manifest()
  if (sealed !== undefined) yield* archive.text(SECRETS, sealed, AT)
  yield* archive.text(MANIFEST, JSON.stringify(manifest()), AT)
  yield* archive.end
  return bare
}, Effect.scoped)

/** A sealed backup, and a copy of it in which somebody changed something and made every digest of the manifest right again. */
const changedFile = Effect.fnUntraced(function* (folder: string, change: Partial<Parts>) {
  const secrets = Redacted.make('{"key":"s3cr3t","postgres-url":"postgres://u@h/d"}')
  // The manifest says that there is a seal, and the seal covers that.
  const manifest = yield* writeParts(join(folder, "bare.gz"), MADE, "")
  const sealed = yield* seal(secrets, Redacted.make(PASSPHRASE), bound(manifest), COST)
  const parts = { ...MADE, ...change }
  const file = join(folder, "changed.gz")
  yield* writeParts(file, parts, parts.seal(sealed))
  return file
})

const restored = Effect.fnUntraced(function* (
  change: Partial<Parts>,
  flags: ReadonlyArray<string>,
  stdin = PASSPHRASE
) {
  const folder = yield* temporaryFolder
  const file = yield* changedFile(folder, change)
  const home = join(folder, "home")
  const ran = yield* choirctl(home, ["restore", file, "--json", ...flags], { stdin })
  const { error } = document(ran) as { readonly error?: { readonly type: string; readonly hint: string } }
  return { ran, home, error, told: ran.out + ran.err }
})

const withoutCheck = (sealed: string) => JSON.stringify({ ...JSON.parse(sealed), check: undefined })
const PROVED = ["--passphrase-stdin"]

const CHANGES: Readonly<Record<string, Partial<Parts>>> = {
  "the runtime in config.json": { config: { ...config, runtime: { type: "process" } } },
  "the path of a workspace": { config: { ...config, workspaces: { main: { path: "/srv/elsewhere" } } } },
  "an endpoint that a key goes to": {
    config: {
      ...config,
      models: { m: { provider: "other", model: "m", endpoint: "https://evil.example/v1", secret: "key" } }
    }
  },
  "the text of a file": { text: "hellO" },
  "the mode of a file": { mode: 0o755 },
  "a further file with the setuid bit": { more: ["workspaces/main/su"] },
  "the home of the manifest": { manifest: { home: "/srv/other" } },
  "what the manifest leaves out": { manifest: { left_out: ["x\u001B[2J"] } },
  "the names of the secrets": { manifest: { secrets: { names: [], sealed: true, values: true } } },
  "whether values are sealed": { manifest: { secrets: { names: ["key" as never], sealed: true } } },
  "the sealed text": {
    seal: (sealed) => JSON.stringify({ ...JSON.parse(sealed), sealed: Buffer.from("{}").toString("base64") })
  }
}

describe("a sealed backup", () => {
  it.live("is restored with its passphrase, with the secrets and without their values", () =>
    Effect.gen(function* () {
      const whole = yield* restored({}, PROVED)
      assert.strictEqual(whole.ran.code, 0, whole.told)
      assert.include(readFileSync(join(whole.home, "secrets.json"), "utf8"), "s3cr3t")
      const without = yield* restored({}, [...PROVED, "--without-secrets"])
      assert.strictEqual(without.ran.code, 0, without.told)
      assert.strictEqual(readFileSync(join(without.home, "secrets.json"), "utf8").trim(), "{}")
      assert.deepNestedInclude(document(without.ran), { unset: ["key"] })
    })
  )

  for (const [what, change] of Object.entries(CHANGES))
    it.live(`is refused when somebody changed ${what}, also without its secrets, and nothing leads past the seal`, () =>
      Effect.gen(function* () {
        for (const flags of [PROVED, [...PROVED, "--without-secrets"]]) {
          const { error, home, ran, told } = yield* restored(change, flags)
          assert.strictEqual(ran.code, 1, told)
          assert.strictEqual(error?.type, "BACKUP_CHANGED", told)
          assert.notMatch(told, /--without-secrets|--unproved/u)
          assert.isFalse(existsSync(home))
        }
      })
    )

  it.live("is not restored without its passphrase, unless the operator takes it unproved and without secrets", () =>
    Effect.gen(function* () {
      for (const flags of [[], ["--without-secrets"]]) {
        const asked = yield* restored(CHANGES["the runtime in config.json"] ?? {}, flags)
        assert.strictEqual(asked.ran.code, 2, asked.told)
        assert.notMatch(asked.told, /--without-secrets|--unproved/u)
        assert.isFalse(existsSync(asked.home))
      }
      const both = yield* restored({}, [...PROVED, "--unproved"])
      assert.strictEqual(both.ran.code, 2)
      const taken = yield* restored({}, ["--unproved"])
      assert.strictEqual(taken.ran.code, 0, taken.told)
      assert.match(taken.ran.err, /warning: nothing proves that \S+ is as it was made: its passphrase was not tried/u)
      assert.strictEqual(readFileSync(join(taken.home, "secrets.json"), "utf8").trim(), "{}")
    })
  )

  it.live("tells a wrong passphrase from a change", () =>
    Effect.gen(function* () {
      const wrong = yield* restored({}, PROVED, "correct horse batterz")
      assert.strictEqual(wrong.error?.type, "PASSPHRASE")
      assert.include(wrong.told, "the passphrase is wrong.")
      assert.notMatch(wrong.told, /--without-secrets|--unproved/u)
    })
  )

  it.live("of an older Choir opens as before, and says that it cannot tell the two apart", () =>
    Effect.gen(function* () {
      const whole = yield* restored({ seal: withoutCheck }, PROVED)
      assert.strictEqual(whole.ran.code, 0, whole.told)
      for (const [change, stdin] of [
        [{ text: "hellO" }, PASSPHRASE],
        [{}, "another passphrase"]
      ] as const) {
        const { error, told } = yield* restored({ ...change, seal: withoutCheck }, PROVED, stdin)
        assert.strictEqual(error?.type, "PASSPHRASE", told)
        assert.include(error?.hint ?? "", "cannot be told apart")
        assert.notMatch(told, /--without-secrets|--unproved/u)
      }
    })
  )

  it.live("without its seal is refused when a passphrase is given, and otherwise restored with a warning", () =>
    Effect.gen(function* () {
      const unsealed = { seal: () => undefined }
      const given = yield* restored(unsealed, PROVED)
      assert.strictEqual(given.error?.type, "UNSEALED", given.told)
      assert.isFalse(existsSync(given.home))
      const taken = yield* restored(unsealed, [])
      assert.strictEqual(taken.ran.code, 0, taken.told)
      assert.match(taken.ran.err, /warning: nothing proves that \S+ is as it was made: it has no passphrase/u)
    })
  )
})
