/** The time limits of tests. A busy machine is slow and not wrong: no test has less time than the suite gives each (vitest.config.ts). */
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { LAYER_MS_MAX } from "./size.ts"

const ROOT = join(import.meta.dirname, "../..")

/** As the option of a test, a suite or a layer, and as the last argument of a test. */
const LIMITS = [
  /(?<!waitFor\()\{ timeout: (?<limit>[\w ()*+?:.]+?)(?:,[^}\n]*)? \}[,)]/gu,
  /\n +\}\)(?:\.pipe\([\w.()]+\))?,\n +(?<limit>[\w ()*+?:.]+)\n +\)/gu,
  /const \w+ = \{ timeout: (?<limit>[\w ()*+?:.]+) \}/gu
]

const numberOf = (text: string): number => Number(text.replaceAll("_", ""))

/** A number, a product of two, what a sum begins with, or the lesser one of two sizes. Others are known to nobody here. */
const writtenValue = (text: string): number => {
  const [, product, first = "", second = ""] = /^(([\d_]+) \* ([\d_]+))$/u.exec(text) ?? []
  if (product !== undefined) return numberOf(first) * numberOf(second)
  const [, ci = "", full = ""] = /^isFull \? ([\d_]+) : ([\d_]+)$/u.exec(text) ?? []
  if (ci !== "") return Math.min(numberOf(ci), numberOf(full))
  return numberOf(/^([\d_]{4,})(?: \+ .*)?$/u.exec(text)?.[1] ?? "Infinity")
}

const valueOf = (limit: string, source: string): number =>
  writtenValue(new RegExp(String.raw`const ${limit.replaceAll(/\W/gu, ".")} = (.*)`, "u").exec(source)?.[1] ?? limit)

/** Limits below the suite's, as `file:line: limit`. */
const short = (path: string, source: string): ReadonlyArray<string> =>
  LIMITS.flatMap((pattern) =>
    [...source.matchAll(pattern)].flatMap(({ groups = {}, index }) => {
      const limit = groups["limit"] ?? ""
      if (valueOf(limit, source) >= LAYER_MS_MAX) return []
      return [`${path}:${source.slice(0, index).split("\n").length}: ${limit}`]
    })
  )

describe("the time limits of tests", () => {
  it("all reach the suite's", () => {
    const config = readFileSync(join(ROOT, "vitest.config.ts"), "utf8")
    assert.strictEqual(numberOf(/testTimeout: ([\d_]+)/u.exec(config)?.[1] ?? ""), LAYER_MS_MAX)
    const paths = globSync("test/**/*.ts", { cwd: ROOT }).filter((path) => path !== "test/support/timeLimits.test.ts")
    assert.isAbove(paths.length, 500)
    assert.deepStrictEqual(
      paths.flatMap((path) => short(path, readFileSync(join(ROOT, path), "utf8"))),
      []
    )
  })

  it.each([
    'describe("a", { timeout: 60_000 }, () => {})',
    "const LIVE = { timeout: 60_000 }",
    'it.live(\n  "a",\n  () =>\n    Effect.gen(function* () {\n    }),\n    60_000\n  )',
    'const A = 3 * 60_000\nit.live(\n  "a",\n  () =>\n    Effect.gen(function* () {\n    }).pipe(Effect.scoped),\n    A\n  )',
    "layer(stores, { timeout: 120_000, excludeTestServices: true })((it) => {})"
  ])("are found in %j", (source) => {
    assert.lengthOf(short("a.test.ts", source), 1)
  })

  it.each([
    'describe("a", { timeout: 300_000 }, () => {})',
    "const A = isFull ? 900_000 : 300_000\ndescribe('a', { timeout: A }, () => {})",
    "layer(stores, { timeout: LAYER_MS_MAX })((it) => {})"
  ])("are long enough in %j", (source) => {
    assert.deepStrictEqual(short("a.test.ts", source), [])
  })
})
