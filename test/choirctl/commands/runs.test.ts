import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { choirctl, document } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { fakeChoird } from "../../support/fakeChoird.ts"
import { jobRunRows, skillRunRows } from "../../support/fakeRuns.ts"

describe("choirctl skill runs and session jobs", () => {
  it.effect("list orphans, and job profiles with how their jobs ended", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      const { out } = yield* choirctl(home, ["session", "orphans", "agent-1"])
      assert.match(out, /refactor-auth +coder .+ error +- +orphan/u)
      assert.match(
        (yield* choirctl(home, ["profile", "list", "agent-1"])).out,
        /scout +research +no +3 +8 +75% +1m 30s +Reads/u
      )
      assert.match((yield* choirctl(home, ["profile", "show", "agent-1", "scout"])).out, /tokens +at most 50000/u)
      const unknown = yield* choirctl(home, ["profile", "show", "agent-1", "coder"])
      assert.strictEqual(unknown.code, 2)
      assert.include(unknown.err, "known: scout")
      assert.deepInclude(calls[0], { name: 'job runs {"orphans":"true"}' })
    })
  )

  it.effect("list runs for people and as JSON, narrowed to a skill and a number", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      const { out } = yield* choirctl(home, ["skill", "runs", "agent-1"])
      assert.match(
        out,
        /tidy +probabilistic +task +edge +keyword: tidy .+ completed +0\.9 passed +1 +4 +1m 30s +1200 +0\.0025 USD/u
      )
      assert.match(out, /tidy +- +- +core:a .+ at look +- +0 /u)
      assert.deepStrictEqual(
        document(yield* choirctl(home, ["skill", "runs", "agent-1", "tidy", "--last", "2", "--json"])),
        skillRunRows
      )
      const jobs = (yield* choirctl(home, ["session", "jobs", "agent-1"])).out
      assert.match(jobs, /refactor-auth .+ error/u)
      assert.match(jobs, /dig .+ cancelled .+\n.*sow .+ busy/u)
      assert.notInclude(jobs, "FAILED")
      assert.deepStrictEqual(document(yield* choirctl(home, ["session", "jobs", "agent-1", "--json"])), jobRunRows)
      assert.strictEqual((yield* choirctl(home, ["skill", "runs", "agent-1", "--last", "0"])).code, 2)
      assert.deepStrictEqual(
        calls.map(({ name }) => name),
        ["skill runs {}", 'skill runs {"skill":"tidy","last":2}', "job runs {}", "job runs {}"]
      )
    })
  )
})
