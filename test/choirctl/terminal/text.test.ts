import { assert, describe, it } from "@effect/vitest"
import { ago, fields, jsonText, paint, safeLine, safeText, span, table } from "#src/choirctl/terminal/text.ts"

describe("safeText", () => {
  it("keeps lines and tabs, and takes away what a terminal obeys", () => {
    assert.strictEqual(safeText("a\r\nb\tc"), "a\nb\tc")
    assert.strictEqual(
      safeText("\u001b[2J\u009b1A\u0007\u202Egpj.exe\u2066"),
      "\u{FFFD}[2J\u{FFFD}1A\u{FFFD}\u{FFFD}gpj.exe\u{FFFD}"
    )
    assert.strictEqual(safeText("in\u200bvis\u00adible\ufeff \u{e0041}"), "in\u{FFFD}vis\u{FFFD}ible\u{FFFD} \u{FFFD}")
    assert.strictEqual(safeText("👩‍💻"), "👩‍💻")
    assert.strictEqual(safeText("progress\r100%"), "progress\u{FFFD}100%")
  })

  it("makes one line of many", () => {
    assert.strictEqual(safeLine(" a\n\n b \t c "), "a b c")
  })
})

describe("jsonText", () => {
  it("holds no control character and decodes to the same value", () => {
    const value = { text: "\u001b[2J \u007f \u0085 \u009b ü 漢" }
    const text = jsonText(value)
    assert.notMatch(text, /\p{Cc}/u)
    assert.deepStrictEqual(JSON.parse(text), value)
    assert.strictEqual(jsonText([1, null]), "[1,null]")
  })
})

describe("table", () => {
  it("aligns columns, also where characters are wide, and shows empty cells", () => {
    assert.strictEqual(
      table(
        ["NAME", "N"],
        [
          ["漢字", "1"],
          ["long-name", ""]
        ],
        false
      ),
      ["NAME       N", "漢字       1", "long-name  -"].join("\n")
    )
  })

  it("colours cells without moving what follows, and takes control characters out of them", () => {
    const text = table(["A", "B"], [[{ text: "up\u001b", style: "green" }, "x"]], true)
    assert.strictEqual(text, "\u001b[1mA\u001b[0m    \u001b[1mB\u001b[0m\n\u001b[32mup\u{FFFD}\u001b[0m  x")
  })

  it("puts names and values below each other", () => {
    assert.strictEqual(
      fields([
        ["a", "1"],
        ["long", "2"]
      ]),
      "a     1\nlong  2"
    )
  })
})

describe("paint", () => {
  it("changes nothing where there is no colour", () => {
    assert.strictEqual(paint(false, "red", "x"), "x")
    assert.strictEqual(paint(true, "red", "x"), "\u001b[31mx\u001b[0m")
  })
})

describe("span and ago", () => {
  it("shows the two largest units", () => {
    const cases: ReadonlyArray<readonly [number, string]> = [
      [0, "0ms"],
      [999, "999ms"],
      [59_999, "59s"],
      [60_000, "1m"],
      [3_599_000, "59m 59s"],
      [3_600_000, "1h"],
      [90_061_000, "1d 1h"]
    ]
    for (const [ms, text] of cases) assert.strictEqual(span(ms), text)
  })

  it("counts from now and repeats what is not a time", () => {
    assert.strictEqual(ago("1970-01-01T00:00:00.000Z", 65_000), "1m 5s ago")
    assert.strictEqual(ago("1970-01-01T00:00:00.000Z", 10), "just now")
    assert.strictEqual(ago(null, 0), "")
    assert.strictEqual(ago("never", 0), "never")
  })
})
