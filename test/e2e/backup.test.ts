import { statSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import type { SessionId } from "#schema/Ids.ts"
import { choirctl, document } from "../support/choirctl.ts"
import { temporaryFolder } from "../support/engines.ts"
import { describeInstallations } from "../support/everyInstallation.ts"
import { makeInstallation } from "../support/installation.ts"
import { makeProvider, offlineModel } from "../support/testing/Provider.ts"
import { historyProblems } from "../support/verifyHistory.ts"

describeInstallations("a backup", (place) => {
  it.live("taken in the middle of a turn brings the session to another home, where the turn goes on (R70)", () =>
    Effect.gen(function* () {
      const provider = yield* makeProvider
      yield* provider.otherwise((request) => offlineModel(request, 0))
      const file = join(yield* temporaryFolder, "choir.gz")
      const lost = yield* makeInstallation({ endpoint: provider.endpoint, ...(yield* place) })
      const first = yield* lost.start
      yield* lost.build
      const { session_id } = yield* lost.api.agents.start({ params: lost.params, payload: {} })
      const id = session_id as SessionId
      yield* Effect.flatMap(lost.send("one", "hello"), ({ inbox_id }) => lost.settled(inbox_id))
      const { inbox_id } = yield* lost.send("two", "run sleep 60\nwrite after.txt: after")
      const begun = Effect.map(lost.events(id), (history) =>
        history.some(({ event }) => event.event_type === "ToolCallCommitted")
      )
      yield* Effect.repeat(begun, { until: (is) => is, schedule: Schedule.spaced("20 millis") })
      const acknowledged = yield* lost.events(id)
      const made = yield* choirctl(lost.home, ["db", "backup", file, "--json"])
      assert.strictEqual(made.code, 0, made.err + made.out)
      assert.strictEqual(statSync(file).mode & 0o777, 0o600)
      const refused = yield* choirctl(lost.home, ["db", "restore", file, "--force", "--json"])
      assert.nestedPropertyVal(document(refused), "error.type", "CHOIRD_RUNS")
      yield* first.signal("SIGKILL")
      yield* first.exited

      const found = yield* makeInstallation({ endpoint: provider.endpoint, ...(yield* place) })
      const builder = yield* found.start
      yield* found.build
      yield* builder.signal("SIGTERM")
      assert.strictEqual(yield* builder.exited, 0)
      const restored = yield* choirctl(found.home, ["db", "restore", file, "--json"])
      assert.strictEqual(restored.code, 0, restored.err + restored.out)
      assert.deepInclude(document(restored), { ok: true, sessions: 1, broken: [] })
      yield* found.start
      yield* found.settled(inbox_id)
      const detail = yield* found.api.agents.status({ params: found.params })
      assert.deepStrictEqual([detail.status, detail.session_id], ["running", session_id])
      const history = yield* found.events(id)
      assert.deepStrictEqual(history.slice(0, acknowledged.length), acknowledged)
      assert.deepStrictEqual(historyProblems(id, history), [])
      const { ok } = yield* found.api.sessions.verify({ params: { id } })
      assert.isTrue(ok)
    }).pipe(Effect.scoped)
  )
})
