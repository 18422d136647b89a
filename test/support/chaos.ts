/**
 * Kills real processes at random points while a conversation goes on, and then checks that nothing acknowledged was lost or done
 * twice (R1, R2).
 */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Option, Random, Schedule } from "effect"
import type { InboxId, SessionId } from "#schema/Ids.ts"
import { makeInstallation, type InstallationOptions } from "./installation.ts"
import { makeProvider, offlineModel } from "./testing/Provider.ts"
import { conversationProblems, historyProblems, ledgerProblems } from "./verifyHistory.ts"

export interface ChaosOptions extends Omit<InstallationOptions, "endpoint"> {
  readonly target: "agent" | "choird"
  readonly kills: number
  readonly seed: string
  /** Told after each kill. */
  readonly progress?: (kill: number) => void
}

export interface ChaosReport {
  readonly kills: number
  readonly messages: number
  readonly events: number
  readonly problems: ReadonlyArray<string>
}

/** One session for the whole conversation: a budget that is reached would begin another. */
const UNLIMITED = { total_session_tokens: 1_000_000_000, max_tool_calls_per_session: 1_000_000 }

/** What a user asks for: effects outside and inside the workspace, and jobs. */
const text = (index: number): string =>
  [
    `call ledger.append {"note":"${index}"}`,
    `write notes/${index}.txt: line ${index}; read notes/${index}.txt; run wc -c notes/${index}.txt`,
    `job j${index}: call ledger.append {"note":"job ${index}"}, then write notes/j${index}.txt: done`,
    `hello number ${index}`
  ][index % 4] ?? ""

const lines = (path: string): ReadonlyArray<string> =>
  existsSync(path)
    ? readFileSync(path, "utf8")
        .split("\n")
        .filter((line) => line !== "")
    : []

export const chaos = Effect.fnUntraced(
  function* ({ kills, progress, seed: _seed, target, ...options }: ChaosOptions) {
    const provider = yield* makeProvider
    yield* provider.otherwise((request) => offlineModel(request, "5 millis"))
    const choir = yield* makeInstallation({ ...options, config: { budgets: UNLIMITED }, endpoint: provider.endpoint })
    const { api, params } = choir
    let choird = yield* choir.start
    yield* choir.build
    yield* api.agents.start({ params, payload: {} })
    const sent: Array<InboxId> = []
    const acknowledged: Array<{ readonly rev: number; readonly hash: string }> = []

    const session = Effect.map(api.agents.status({ params }), ({ session_id }) => session_id as SessionId)
    const often = Schedule.max([Schedule.spaced("50 millis"), Schedule.recurs(600)])
    // The breaker stops what crashes too often; a person starts it again, and that is never counted (R9).
    const running = Effect.gen(function* () {
      const { status } = yield* api.agents.status({ params })
      if (status === "crashed" || status === "stopped") yield* Effect.ignore(api.agents.start({ params, payload: {} }))
      if (status !== "running") return yield* Effect.fail("not yet")
    })
    // A client that gets no answer asks again with the same id, as a person's program does.
    const say = (index: number) =>
      Effect.andThen(running, choir.send(`chaos-${index}`, text(index))).pipe(
        Effect.retry(often),
        Effect.tap(({ inbox_id }) => Effect.sync(() => sent.push(inbox_id)))
      )
    const note = Effect.gen(function* () {
      const { acked_rev } = yield* api.agents.status({ params })
      const history = yield* choir.events(yield* session)
      const at = history.find(({ event }) => event.rev === acked_rev)
      if (at !== undefined) acknowledged.push({ rev: at.event.rev, hash: at.hash })
    })
    const kill = Effect.gen(function* () {
      if (target === "choird") {
        yield* choird.signal("SIGKILL")
        yield* choird.exited
        choird = yield* choir.start
        return true
      }
      const pid = Option.getOrUndefined(yield* choird.agent)
      if (pid === undefined) return false
      return yield* Effect.orElseSucceed(
        Effect.try(() => process.kill(pid, "SIGKILL")),
        () => false
      )
    })
    let killed = 0
    let index = 0
    // A try that comes between two lives of the agent hits nothing and is not counted.
    for (; killed < kills && index < 3 * kills; index++) {
      yield* say(index)
      if (index % 5 === 0) yield* note
      yield* Effect.sleep(yield* Random.nextIntBetween(0, 250))
      if (!(yield* kill)) continue
      killed += 1
      progress?.(killed)
    }
    const last = yield* say(index)
    // The last kill may trip the breaker after the last message was taken.
    const attended = Effect.forever(Effect.andThen(Effect.ignore(running), Effect.sleep("100 millis")))
    yield* Effect.raceFirst(choir.settled(last.inbox_id), attended).pipe(Effect.timeout("60 seconds"))
    const session_id = yield* session
    const history = yield* choir.events(session_id)
    const verification = yield* api.sessions.verify({ params: { id: session_id } })
    const lost = acknowledged.filter(({ hash, rev }) => history[rev - 1]?.hash !== hash)
    const report: ChaosReport = {
      kills: killed,
      messages: sent.length,
      events: history.length,
      problems: [
        ...historyProblems(session_id, history),
        ...conversationProblems(sent, history),
        ...ledgerProblems(lines(join(choir.workspace, "ledger")), history),
        ...lost.map(({ rev }) => `the acknowledged revision ${rev} is not the one that was acknowledged`),
        ...(verification.ok ? [] : [`choird's own verification fails: ${JSON.stringify(verification.problem)}`])
      ]
    }
    return report
  },
  (effect, { seed }) => Effect.scoped(effect).pipe(Random.withSeed(seed))
)
