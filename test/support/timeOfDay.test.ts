import { assert, it } from "@effect/vitest"
import { parsed } from "./syntax.ts"
import { looksIn } from "./timeOfDay.ts"

it("a look at the time of day is found however it is written, and no other date", () => {
  const looks = [
    "Clock.currentTimeMillis",
    "clock.currentTimeMillisUnsafe()",
    "const { currentTimeNanos } = clock",
    "Date.now()",
    "[1].map(Date.now)",
    "new Date()",
    "Date()",
    "DateTime.now",
    "DateTime.nowUnsafe()"
  ]
  const others = [
    "new Date(row.at)",
    "Date.parse(at)",
    "Clock.monotonicTimeNanos",
    "performance.now()",
    "// Date.now()"
  ]
  for (const code of looks) assert.strictEqual(looksIn(parsed("a.ts", code)), 1, code)
  for (const code of others) assert.strictEqual(looksIn(parsed("a.ts", code)), 0, code)
})
