/** What lives as long as its program does not grow for as long: each collection that only grows has a bound with a reason. */
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { growingState } from "./growingState.ts"
import { parsed, parsedFolder } from "../support/syntax.ts"

const SRC = join(import.meta.dirname, "../../src")

/** Ends with one piece of work: a request, an answer, a file or a trial. */
const WORK = "ends with its work, whose size is bounded"
const AGENTS = "one for each agent of config.json"

/** The collections of choird that nothing in their file makes smaller, and what bounds each. */
const CHOIRD: Readonly<Record<string, string>> = {
  "agents/AgentViews.ts: views": AGENTS,
  "approvals/askApproval.ts: buckets": AGENTS,
  "approvals/rankedArguments.ts: found": WORK,
  "approvals/rankedArguments.ts: seen": WORK,
  "database/Backup.ts: copied": WORK,
  "database/Backup.ts: newest": WORK,
  "gateway/GatewayHealth.ts: healths": "one for each gateway of config.json",
  "gateway/GatewayHealth.ts: names": "one for each gateway of config.json",
  "telegram/jobTopics.ts: without_until_ms": "one for each chat of config.json",
  "telegram/markedText.ts: parts": WORK,
  "telegram/richBlocks.ts: parts": WORK,
  "logs/LogFiles.ts: files": AGENTS,
  "logs/metrics.ts: known": "TELEMETRY_NAMES_MAX",
  "memory/Embeddings.ts: earlier": "EARLIER_MAX",
  "memory/forgetTarget.ts: compactions": WORK,
  "memory/forgetTarget.ts: found": WORK,
  "memory/forgetTarget.ts: starts": WORK,
  "memory/ranking.ts: scores": WORK,
  "memory/remoteEmbedder.ts: parts": WORK,
  "queues/Drafts.ts: places": AGENTS,
  "repos/Blobs.ts: blobs": WORK,
  "repos/likeTools.ts: first": WORK,
  "repos/skillBundle.ts: spelled": WORK,
  "retention/Retention.ts: report": WORK,
  "retention/Retention.ts: touched": WORK,
  "runtime/ProcessTree.ts: doomed": WORK,
  "runtime/docker/DockerEngine.ts: clients": "one for each socket at which an engine may answer",
  "sessions/runChanges.ts: jobs": WORK,
  "sessions/runChanges.ts: skills": WORK,
  "telemetry/Telemetry.ts: statuses": AGENTS,
  "workers/webRequest.ts: chunks": WORK
}

/** The same of an agent. */
const AGENT: Readonly<Record<string, string>> = {
  "arbiter/Arbiter.ts: listeners": "one for each service that listens, at the start",
  "mail/boundedMime.ts: footers": WORK,
  "model/modelRequest.ts: chunks": WORK,
  "outside/OutsideApi.ts: chunks": WORK,
  "process/OutputRing.ts: head": WORK,
  "process/ProcessRunner.ts: exempt":
    "the processes at the start, and ssh-agents: a further one only where the last was killed",
  "process/ProcessTable.ts: owners": WORK,
  "session/jobLines.ts: known": "the two names of its type",
  "settings/SecretStore.ts: names": "the names in manifests of the image",
  "tools/foundLines.ts: lines": WORK,
  "trial/RecordedTools.ts: external": WORK,
  "trial/RecordedTools.ts: files": WORK,
  "trial/containedTrial.ts: held": WORK,
  "trial/skillReport.ts: proposed": WORK
}

describe("a collection that only grows", () => {
  for (const [program, bounds] of [
    ["choird", CHOIRD],
    ["agent", AGENT]
  ] as const)
    it(`has a bound in ${program}`, () => {
      const found = parsedFolder(join(SRC, program)).flatMap(growingState)
      assert.deepStrictEqual(found.toSorted(), Object.keys(bounds).toSorted())
    })

  const CODE: ReadonlyArray<readonly [string, boolean]> = [
    ["const seen = new Set()\nconst see = (x) => seen.add(x)", true],
    ["const make = () => { const seen = new Map()\nreturn (x) => seen.set(x, 1) }", true],
    ["const make = Effect.gen(function* () { const all = []\nreturn { add: (x) => all.push(x) } })", true],
    ["class A { #seen = new Set()\nsee(x) { this.#seen.add(x) } }", true],
    ["const make = () => { const seen = new Set()\nreturn (x) => { seen.add(x); seen.delete(1) } }", false],
    ["const make = () => { let all = []\nreturn { add: (x) => all.push(x), take: () => { all = [] } } }", false],
    ["const one = (xs) => { const all = []\nfor (const x of xs) all.push(x)\nreturn all }", false]
  ]
  for (const [code, grows] of CODE)
    it(`is ${grows ? "found" : "not found"} in ${code.replaceAll("\n", "; ")}`, () => {
      assert.lengthOf(growingState(parsed("a.ts", code)), grows ? 1 : 0)
    })
})
