/** What is left after a siege, looked at with none of Choir's own code: histories, replies, effects, and what the hostile agents got to see. */
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Schedule } from "effect"
import type { AgentId } from "#schema/Ids.ts"
import { makeSearch } from "../support/canary/search.ts"
import { conversationProblems, historyProblems, ledgerProblems } from "../support/verifyHistory.ts"
import { hostileFiles, type Siege } from "./home.ts"
import type { Honest } from "./honest.ts"
import type { Kind } from "./kinds.ts"
import { TOLD } from "./places.ts"
import { stagesOf } from "./stages.ts"

const patiently = Schedule.max([Schedule.spaced("200 millis"), Schedule.recurs(300)])

const lines = (path: string): ReadonlyArray<string> =>
  existsSync(path) ? readFileSync(path, "utf8").split("\n").filter(Boolean) : []

/** Nothing lost, nothing twice, nothing changed. */
const judgeHonest = Effect.fnUntraced(function* ({ choir, session, workspaceOf }: Siege, honest: Honest) {
  const { id, sent } = honest
  const session_id = session(id)
  const settled = Effect.gen(function* () {
    const history = yield* choir.events(session_id)
    const count = (type: string) => history.filter(({ event }) => event.event_type === type).length
    return count("CoreStarted") === count("CoreStopped") ? history : yield* Effect.fail("not yet")
  })
  const history = yield* Effect.retry(settled, patiently)
  const { epoch } = yield* choir.api.session.show({ params: { id: session_id } })
  const verification = yield* choir.api.sessions.verify({ params: { id: session_id } })
  const problems = [
    ...honest.problems,
    ...historyProblems(session_id, history),
    ...conversationProblems(sent, history),
    ...ledgerProblems(lines(join(workspaceOf(id), "ledger")), history),
    ...(epoch === 1 ? [] : [`it was taken for dead: its epoch is ${epoch}`]),
    ...(verification.ok ? [] : [`choird's own verification fails: ${JSON.stringify(verification.problem)}`])
  ]
  const stages = stagesOf(honest.turns, history)
  return { events: history.length, stages, problems: problems.map((problem) => `${id}: ${problem}`) }
})

/** What a hostile agent's log says, as choird prints it; an agent may have begun further sessions. */
const logsOf = Effect.fnUntraced(function* ({ choir }: Siege, id: AgentId) {
  const sessions = (yield* choir.api.sessions.list({ query: {} })).filter(({ agent_id }) => agent_id === id)
  const logs = yield* Effect.forEach(sessions, ({ session_id }) => choir.events(session_id))
  return logs.flat().map((line) => JSON.stringify(line))
})

interface Told {
  readonly counts: Readonly<Record<string, number>>
  readonly seen: ReadonlyArray<string>
}
const NOTHING: Told = { counts: {}, seen: [] }
const readTold = (path: string): Told => (existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as Told) : NOTHING)

/** How many attacks a program says that it made, in its newest life. */
export const attacksOf = ({ workspaceOf }: Siege, id: AgentId): number =>
  readTold(join(workspaceOf(id), TOLD)).counts["attacks"] ?? 0

export const judge = Effect.fnUntraced(function* (
  siege: Siege,
  kinds: ReadonlyArray<Kind>,
  honest: ReadonlyArray<Honest>
) {
  const judged = yield* Effect.forEach(honest, (each) => judgeHonest(siege, each))
  const known = [siege.honestKey, ...honest.flatMap(({ canaries }) => canaries)]
  const search = yield* makeSearch(known.map((needle) => ({ name: needle, value: needle, needle })))
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "choir-siege-logs-"))),
    (made) => Effect.sync(() => rmSync(made, { recursive: true, force: true }))
  )
  const problems = judged.flatMap((each) => each.problems)
  const told: Record<string, string> = {}
  for (const { ends, id, leaves, words } of kinds) {
    const { reason, status } = yield* siege.choir.api.agents.status({ params: { id } })
    const { counts, seen } = readTold(join(siege.workspaceOf(id), TOLD))
    const log = yield* logsOf(siege, id)
    // Together they may be longer than a text can be.
    for (const line of log) appendFileSync(join(folder, `${id}.log`), `${line}\n`)
    told[id] =
      `${status}${reason === null ? "" : ` (${reason.slice(0, 80)})`}, ${log.length} events ${JSON.stringify(counts)}`
    problems.push(...seen.map((canary) => `${id} was answered ${canary}`))
    if (status !== "stopped" && ends !== true) problems.push(`${id} is ${status} after its stop`)
    if (words !== undefined && !log.some((line) => leaves === undefined || line.includes(`"event_type":"${leaves}"`)))
      problems.push(`${id} did nothing`)
  }
  const found = search.files([folder, ...hostileFiles(siege, kinds)])
  problems.push(...found.map(({ canary, file, form }) => `${canary} (${form}) is in ${file}`))
  return {
    events: judged.reduce((sum, { events }) => sum + events, 0),
    told,
    problems,
    stages: judged.flatMap(({ stages }) => stages)
  }
})
