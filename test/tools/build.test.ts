/** `npm run build` itself, in a copy of the repository, so that no test takes the bundles away from another. */
import { type ChildProcess, type ChildProcessByStdio, spawn } from "node:child_process"
import { once } from "node:events"
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import type { Readable } from "node:stream"
import { text } from "node:stream/consumers"
import { setTimeout } from "node:timers/promises"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { ROOT } from "../support/installation.ts"

/** Ten times a build. */
const BUILD_MS_MAX = 600_000
const POLL_MS = 10
const BUILD_SOURCES = [
  "package.json",
  "package-lock.json",
  "rolldown.config.ts",
  "tsconfig.json",
  "demo",
  "schema",
  "src",
  "tools",
  "dist"
]

// With a space, as a person's folder may have.
const folder = mkdtempSync(join(tmpdir(), "choir build "))
const copy = join(folder, "choir")
const dist = join(copy, "dist")

const started: Array<ChildProcessByStdio<null, null, Readable>> = []
const start = (program: string, ...args: ReadonlyArray<string>) => {
  const child = spawn(process.execPath, [join(copy, program), ...args], {
    detached: true,
    stdio: ["ignore", "ignore", "pipe"]
  })
  started.push(child)
  return child
}

const ran = async (program: string, ...args: ReadonlyArray<string>) => {
  const child = start(program, ...args)
  const [[code], printed] = await Promise.all([once(child, "exit"), text(child.stderr)])
  return { code: code as number | null, printed }
}

const build = (...args: ReadonlyArray<string>) => ran("tools/build.ts", ...args)

const until = async (condition: () => boolean, timeLeft = BUILD_MS_MAX / POLL_MS): Promise<void> => {
  if (condition()) return
  if (timeLeft === 0) throw new Error("it never came to that")
  await setTimeout(POLL_MS)
  await until(condition, timeLeft - 1)
}

const unfinished = () =>
  existsSync(join(dist, "unfinished"))
    ? readdirSync(join(dist, "unfinished"), { recursive: true, encoding: "utf8" })
    : []

const killTree = (child: ChildProcess) => {
  try {
    process.kill(-(child.pid ?? 0), "SIGKILL")
  } catch {
    // It has ended.
  }
}

beforeAll(() => {
  for (const path of BUILD_SOURCES) cpSync(join(ROOT, path), join(copy, path), { recursive: true })
  symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"))
})

afterAll(() => {
  for (const child of started) killTree(child)
  rmSync(folder, { recursive: true })
})

describe("npm run build", () => {
  it("does nothing where dist/ is up to date", async () => {
    assert.deepStrictEqual(await build("--quiet"), { code: 0, printed: "" })
    assert.deepStrictEqual(await build(), { code: 0, printed: "dist/ is up to date; --force builds anyway\n" })
  })

  it("keeps what a call of choirctl loads apart: Node's version first, then what every call needs, and no command", () => {
    const importsOf = (file: string) =>
      [...readFileSync(join(dist, file), "utf8").matchAll(/(?:^|[;}\n])import[^"'`(;]*?from"(?<from>[^"]+)"/gu)].map(
        ({ groups }) => groups?.["from"]
      )
    assert.deepStrictEqual(importsOf("choirctl.js"), ["./choirctl/version.js", "node:module", "node:v8"])
    assert.deepStrictEqual(importsOf("choirctl/version.js"), [])
    assert.sameMembers(importsOf("choirctl/start.js"), ["./version.js", "node:os", "node:path"])
  })

  it(
    "starts over after it was killed, and once when two are started",
    async () => {
      appendFileSync(join(copy, "src/shared/limits.ts"), "\nexport const ADDED_BY_A_TEST = 1\n")
      const killed = start("tools/build.ts")
      await until(() => unfinished().some((path) => path.endsWith("choird.js")))
      killTree(killed)
      const both = await Promise.all([build(), build()])
      assert.deepStrictEqual(
        both.map(({ code }) => code),
        [0, 0]
      )
      const texts = both.map(({ printed }) => printed).toSorted()
      assert.match(texts[0] ?? "", /^building \(about \d+ s\)…\nbuilt in [\d.]+ s\n$/u)
      assert.match(texts[1] ?? "", /^waiting for the build in process \d+…\ndist\/ is up to date/u)
      assert.deepStrictEqual(await build("--quiet"), { code: 0, printed: "" })
      assert.isFalse(existsSync(join(dist, "unfinished")))
      assert.strictEqual((await ran("dist/choirctl.js", "--version")).code, 0)
    },
    BUILD_MS_MAX
  )

  it(
    "fails with the tool's own words and leaves the programs that were there",
    async () => {
      writeFileSync(join(copy, "src/choirctl/run.ts"), "const broken = (\n")
      const { code, printed } = await build()
      assert.strictEqual(code, 1)
      assert.match(printed, /error: rolldown failed \(exit code 1\):[^]*src\/choirctl\/run\.ts/u)
      assert.strictEqual((await ran("dist/choirctl.js", "--version")).code, 0)
      assert.match((await build("--quiet")).printed, /^building/u)
    },
    BUILD_MS_MAX
  )
})

describe("the lock of the build", () => {
  const holder = () => {
    const child = start("hold.ts")
    return { child, lines: createInterface(child.stderr)[Symbol.asyncIterator]() }
  }

  it("is free again when its holder is killed", async () => {
    writeFileSync(
      join(copy, "hold.ts"),
      `import { lockBuild } from "./tools/buildLock.ts"
await lockBuild(import.meta.dirname, (pid) => process.stderr.write("waits for " + pid + "\\n"))
process.stderr.write("holds\\n")
setInterval(() => undefined, 1000)
`
    )
    const first = holder()
    assert.strictEqual((await first.lines.next()).value, "holds")
    const second = holder()
    assert.strictEqual((await second.lines.next()).value, `waits for ${first.child.pid}`)
    killTree(first.child)
    assert.strictEqual((await second.lines.next()).value, "holds")
  })
})
