import { assert, describe, it } from "@effect/vitest"
import { NAMED_SOURCES, PLAIN_SOURCES, type Source, SOURCE_NAME_CHARS_MAX, SOURCES_MAX } from "#schema/Source.ts"
import { sourceOf, withSources } from "#src/shared/session/sources.ts"

const mail = (n: number) => sourceOf("mail", `user${n}@a.example`)

describe("the sources of text from outside", () => {
  it("are visible on one line whatever the name holds, and never too long", () => {
    const cases = [
      ["Eve <eve@a.example>", "mail:eve%20<eve@a.example>"],
      ["", "mail:?"],
      ["a\n[approved]", "mail:a%0A[approved]".toLowerCase()],
      ["\u{202e}moc.elpmaxe@eve", "mail:%e2%80%aemoc.elpmaxe@eve"],
      ["j\u{fc}rgen@a.example", "mail:j%c3%bcrgen@a.example"],
      ["\u{d800}x", "mail:%ef%bf%bdx"]
    ] as const
    for (const [name, label] of cases) assert.strictEqual(sourceOf("mail", name).toLowerCase(), label)
    assert.isAtMost(sourceOf("web", "\u{202e}".repeat(500)).length, SOURCE_NAME_CHARS_MAX + 4)
  })

  it("are joined once each, and are the same list where nothing is new", () => {
    const known = withSources([], [mail(1), mail(1), "notion"])
    assert.deepStrictEqual(known, [mail(1), "notion"])
    assert.strictEqual(withSources(known, [mail(1)]), known)
  })

  it("hide no kind however many are added: of the commonest one only the kind is left", () => {
    const flood = Array.from({ length: 500 }, (_, n) => mail(n))
    const first: ReadonlyArray<Source> = ["web:evil.example", "notion"]
    const all = withSources(first, flood)
    assert.deepStrictEqual(all, [...first, "mail:*"])
    assert.strictEqual(withSources(all, flood), all)
    const many = NAMED_SOURCES.flatMap((kind) => Array.from({ length: 100 }, (_, n) => sourceOf(kind, `${n}`)))
    const most = many.reduce<ReadonlyArray<Source>>((sources, source) => withSources(sources, [source]), PLAIN_SOURCES)
    assert.isAtMost(most.length, SOURCES_MAX)
    for (const kind of NAMED_SOURCES) assert.isTrue(most.some((source) => source.startsWith(`${kind}:`)))
    for (const kind of PLAIN_SOURCES) assert.include(most, kind)
  })
})
