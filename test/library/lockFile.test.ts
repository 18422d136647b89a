import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { packageFolder } from "#src/shared/files/packageFolder.ts"

const Entry = Schema.Struct({
  version: Schema.optionalKey(Schema.String),
  resolved: Schema.optionalKey(Schema.String),
  integrity: Schema.optionalKey(Schema.String),
  link: Schema.optionalKey(Schema.Boolean),
  optional: Schema.optionalKey(Schema.Boolean),
  hasInstallScript: Schema.optionalKey(Schema.Boolean)
})
const LockFile = Schema.Struct({
  lockfileVersion: Schema.Literal(3),
  packages: Schema.Record(Schema.String, Entry)
})
const Versions = Schema.Record(Schema.String, Schema.String)
const Manifest = Schema.Struct({
  dependencies: Versions,
  devDependencies: Versions,
  optionalDependencies: Versions,
  allowScripts: Schema.Record(Schema.String, Schema.Boolean)
})

const read = <S extends Schema.Decoder<unknown>>(name: string, schema: S) =>
  Schema.decodeUnknownSync(Schema.fromJsonString(schema))(readFileSync(join(packageFolder, name), "utf8"))

const { packages } = read("package-lock.json", LockFile)
const manifest = read("package.json", Manifest)
const installed = Object.entries(packages).filter(([place]) => place.startsWith("node_modules/"))

/** Packages with an install script, which package.json denies: that of protobufjs compares versions and changes nothing. */
const SCRIPTS = ["protobufjs"]

describe("the lock file (R74)", () => {
  it("has a digest for every package that is installed, and names the others, of other platforms, by version", () => {
    const bare = installed.filter(([, entry]) => entry.integrity === undefined && entry.link !== true)
    const wrong = bare.filter(([place, { optional }]) => optional !== true || existsSync(join(packageFolder, place)))
    assert.deepStrictEqual(wrong, [])
    const weak = installed.filter(([, { integrity }]) => integrity !== undefined && !integrity.startsWith("sha512-"))
    assert.deepStrictEqual(weak, [])
    assert.isAbove(installed.length - bare.length, 100)
  })

  it("names nothing outside of the registry but what this repository has", () => {
    const elsewhere = installed.filter(
      ([, { resolved }]) =>
        resolved !== undefined && !/^(?:https:\/\/registry\.npmjs\.org\/|third-party\/)/u.test(resolved)
    )
    assert.deepStrictEqual(elsewhere, [])
  })

  it("has no package with an install script but those that package.json denies", () => {
    const scripted = installed.filter(([, { hasInstallScript }]) => hasInstallScript === true).map(([place]) => place)
    assert.deepStrictEqual(
      scripted,
      SCRIPTS.map((name) => `node_modules/${name}`)
    )
    assert.deepStrictEqual(manifest.allowScripts, Object.fromEntries(SCRIPTS.map((name) => [name, false])))
  })

  it("and package.json agree on exact versions", () => {
    const wanted = { ...manifest.dependencies, ...manifest.devDependencies, ...manifest.optionalDependencies }
    for (const [name, version] of Object.entries(wanted)) {
      if (version.startsWith("file:third-party/")) continue
      assert.match(version, /^\d+\.\d+\.\d+$/u, name)
      assert.strictEqual(packages[`node_modules/${name}`]?.version, version, name)
    }
  })
})
