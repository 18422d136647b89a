import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { choirctl, document } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { fakeChoird } from "../../support/fakeChoird.ts"
import { triedSkill } from "../../support/fakeSkills.ts"
import { skillText } from "../../support/skills.ts"

describe("choirctl tool try", () => {
  it.effect("prints result, source and how sure the call acted, without what would steer a terminal", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      const read = yield* choirctl(home, ["tool", "try", "choir.web.search", "--agent", "agent-1"])
      assert.strictEqual(read.code, 0)
      assert.match(read.out, /source +untrusted, from search/u)
      assert.notInclude(read.out, "\u001B")
      const sent = yield* choirctl(home, ["tool", "try", "letters.send", "--agent", "agent-1", "--yes"])
      assert.match(sent.out, /acted +accepted: the service accepted it; the result was not read back/u)
      assert.strictEqual((yield* choirctl(home, ["tool", "try", "choir.exec", "--agent", "agent-1"])).code, 1)
      assert.deepStrictEqual(
        calls.map(({ name }) => name),
        ["try choir.web.search", "try letters.send confirmed", "try choir.exec"]
      )
    })
  )

  it.effect("asks before a call that acts outside, and calls nothing where nobody can be asked", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      const asked = yield* choirctl(home, [
        "tool",
        "try",
        "letters.send",
        "--agent",
        "agent-1",
        "--input",
        '{"to":"ann"}'
      ])
      assert.strictEqual(asked.code, 2)
      assert.include(asked.err, 'This calls letters.send for real: it acts outside this machine.\n{"to":"ann"}')
      assert.include(asked.err, `tool try letters.send --agent agent-1 --input '{"to":"ann"}' --yes`)
      assert.deepStrictEqual(
        calls.map(({ name }) => name),
        ["try letters.send"]
      )
      assert.strictEqual(
        (yield* choirctl(home, ["tool", "try", "letters.send", "--agent", "agent-1", "--input", "{no"])).code,
        2
      )
    })
  )
})

describe("choirctl skill try", () => {
  it.effect("sends a file or a folder as it is written, and a name as a name, with the files to work on", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      const files = join(home, "files")
      mkdirSync(files)
      writeFileSync(join(files, "a.md"), "a")
      writeFileSync(join(home, "tidy.json"), skillText("tidy"))
      const tryOut = (...args: ReadonlyArray<string>) => choirctl(home, ["skill", "try", ...args, "--agent", "agent-1"])
      assert.deepStrictEqual(document(yield* tryOut(join(home, "tidy.json"), "--files", files, "--json")), triedSkill)
      yield* tryOut("tidy")
      assert.deepStrictEqual(
        calls.map(({ name }) => name),
        ["try given tidy on 1", "try tidy on 0"]
      )
      writeFileSync(join(home, "tidy.json"), "{")
      const broken = yield* tryOut(join(home, "tidy.json"))
      assert.strictEqual(broken.code, 1)
      assert.include(broken.err, "skill check")
    })
  )

  it.effect("prints phases, calls, checks, the judge's score, the cost and what changed", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* fakeChoird(home)
      const { out } = yield* choirctl(home, ["skill", "try", "tidy", "--agent", "agent-1"])
      assert.include(
        out,
        `phase look by start
  choir.email.check {}
    success: 3 unread [from mail:ada@example.org]
  letters.send {}
    not called, since it acts outside; answered as done
end (completed) in done by complete
  confidence 0.5
  holds: each mail is counted
  judge second: 0.9
`
      )
      assert.match(out, /outcome +completed in 2s/u)
      assert.match(out, /changed +triage\.md \(of the copy\)/u)
      assert.match(out, /cost +3 model calls, 1 of them the judge's, 1,200 tokens, 0\.0125 USD/u)
    })
  )
})
