/** No queue grows for as long as its reader is slow: each is made with the number that it holds, in all programs. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"

const SOURCES = join(import.meta.dirname, "../../src")

const texts = readdirSync(SOURCES, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .map((name) => [name, readFileSync(join(SOURCES, name), "utf8")] as const)

const found = (pattern: RegExp) =>
  texts.flatMap(([name, text]) => [...text.matchAll(pattern)].map(([match]) => `${name}: ${match}`))

it("every queue has a limit", () => {
  const made = found(
    /\b(?:Queue|PubSub)\.(?:make|makeAtomicBounded|makeAtomicUnbounded|unbounded|bounded|sliding|dropping)\b(?:<[^()]*>)?\([^)]*\)/gu
  )
  assert.isAbove(made.length, 20)
  // A capacity by its name, one notice that there is something, or a part that has the capacity and is made by itself.
  const named =
    /\((?:\{ capacity: )?[A-Z][A-Z0-9_]*_MAX(?: \})?\)$|<void>\(1\)$|^\S+ PubSub\.make\(\{\s+atomicPubSub: /u
  assert.deepStrictEqual(
    made.filter((one) => !named.test(one)),
    []
  )
})

it("every stream that is filled from outside has a limit", () => {
  const filled = texts.flatMap(([name, text]) =>
    text
      .split(/\bStream\.callback</u)
      .slice(1)
      .map((rest) => [name, rest.slice(0, rest.search(/\n\n/u))] as const)
  )
  assert.isAbove(filled.length, 1)
  for (const [name, rest] of filled)
    assert.match(rest, /\{ bufferSize: [A-Z][A-Z0-9_]*_MAX, strategy: "suspend" \}/u, name)
})
