/** choird on hosts that are prepared wrongly: each start works, or ends at once with a sentence that says how to fix it. */
import { cpSync, lstatSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { afterAll, beforeAll } from "vitest"
import { spawnChoirctl } from "../support/choirctl.ts"
import { whyNotRoot } from "../support/packages.ts"
import { doctorOn, HOST_START_MS_MAX, makePlace, startOn } from "../support/onWrongHost.ts"
import { WRONG_HOSTS } from "../support/wrongHosts.ts"

const left = whyNotRoot("starts on hosts that are prepared wrongly")
const INIT = ["init", "--model-provider", "offline", "--runtime", "process", "--brief"]

/** Seconds of the processor that a refusal may take, however busy this machine is. */
const REFUSAL_CPU_S_MAX = 2

/** When a file of an embedded database was last written, wherever the home is now. */
const databaseWritten = ({ work }: { readonly work: string }): number =>
  Math.max(
    0,
    ...readdirSync(work, { recursive: true, encoding: "utf8" })
      .filter((path) => /(?:^|\/)data\//u.test(path))
      .map((path) => lstatSync(join(work, path)))
      .map((stat) => (stat.isFile() ? stat.mtimeMs : 0))
  )

/** A home as `choirctl init` makes it, of which each host has a copy that knows no other place. */
const template = mkdtempSync(join(tmpdir(), "choir-host-"))

beforeAll(async () => {
  if (left !== undefined) return
  const { code, err } = await Effect.runPromise(spawnChoirctl(["--home", template, ...INIT]))
  assert.strictEqual(code, 0, err)
}, HOST_START_MS_MAX)
afterAll(() => rmSync(template, { recursive: true, force: true }))

describe.skipIf(left !== undefined)("a host that", () => {
  it("is one of at least 15", () => {
    assert.isAbove(WRONG_HOSTS.length, 15)
  })

  it.live.each(WRONG_HOSTS)("$name: choird works, or says at once how to fix it", (host) =>
    Effect.gen(function* () {
      const place = yield* makePlace(template)
      const written = databaseWritten(place)
      const { code, cpu_s, output } = yield* startOn(host, place)
      const { expected } = host
      assert.strictEqual(code, "works" in expected ? undefined : expected.code, output)
      if (expected.says !== undefined) assert.match(output, expected.says)
      // Neither a stack nor a bug is an answer to a host.
      assert.notMatch(output, /\n\s+at |INTERNAL|\[object Object\]/u)
      if ("works" in expected) return
      assert.isBelow(cpu_s ?? Infinity, REFUSAL_CPU_S_MAX)
      // Only a start that works waits for its database.
      assert.notInclude(output, "Postgres is connected")
      if (expected.byDatabase !== true) assert.isAtMost(databaseWritten(place), written)
    }).pipe(Effect.scoped)
  )

  it.live.each(WRONG_HOSTS)(
    "$name: choirctl doctor finds nothing that keeps choird from its work, or says it",
    (host) =>
      Effect.gen(function* () {
        const { code, output } = yield* doctorOn(host, yield* makePlace(template))
        const { doctor, expected } = host
        if ("works" in expected) assert.strictEqual(code, 0, output)
        else assert.notStrictEqual(code, 0, output)
        const says = doctor ?? expected.says
        if (says !== undefined) assert.match(output, says)
        assert.notMatch(output, /\n\s+at |INTERNAL|\[object Object\]/u)
      }).pipe(Effect.scoped)
  )
})

const choirctlOn = (home: string, ...args: ReadonlyArray<string>) => spawnChoirctl(["--home", home, ...args])

const starts = (home: string, place: { readonly home: string; readonly work: string }) =>
  startOn({ name: "the next start", args: () => ["--home", home], expected: { works: true } }, place)

describe.skipIf(left !== undefined)("a home at another place", () => {
  it.live("that was moved is named by doctor, accepted by one command, which corrects its paths, and then starts", () =>
    Effect.gen(function* () {
      const place = yield* makePlace(template)
      assert.isUndefined((yield* starts(place.home, place)).code)
      const moved = join(place.work, "moved")
      renameSync(place.home, moved)
      const doctor = yield* choirctlOn(moved, "doctor")
      assert.match(doctor.out, /fail +place +this home was at .*\n +fix: choirctl --home .*moved home accept/u)
      const accepted = yield* choirctlOn(moved, "home", "accept")
      assert.strictEqual(accepted.code, 0, accepted.err)
      assert.match(accepted.out, /paths corrected in config\.json/u)
      const config = readFileSync(join(moved, "config.json"), "utf8")
      assert.include(config, join(moved, "workspaces/main"))
      assert.notInclude(config, `"${place.home}`)
      const again = yield* starts(moved, place)
      assert.isUndefined(again.code, again.output)
      assert.match((yield* choirctlOn(moved, "home", "accept")).out, /has not moved/u)
    }).pipe(Effect.scoped)
  )

  it.live("that is a copy becomes a home of its own only when its operator says so, and hears of the shared bots", () =>
    Effect.gen(function* () {
      const place = yield* makePlace(template)
      const copy = join(place.work, "copy")
      cpSync(place.home, copy, { recursive: true, preserveTimestamps: true })
      const refused = yield* choirctlOn(copy, "home", "accept")
      assert.strictEqual(refused.code, 1)
      assert.match(refused.err, /is a copy of the home at .* still there: both would answer the same chats/u)
      const accepted = yield* choirctlOn(copy, "home", "accept", "--copy")
      assert.strictEqual(accepted.code, 0, accepted.err)
      assert.match(accepted.out, /gateways have the bots and mailboxes of .*: give it others/u)
      assert.isUndefined((yield* starts(copy, place)).code)
      assert.isUndefined((yield* starts(place.home, place)).code)
    }).pipe(Effect.scoped)
  )
})
