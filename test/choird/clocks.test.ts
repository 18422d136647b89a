/** The host's clock is set while choird works: by an hour forth, as after a resume of its machine, and back. */
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { makePaces } from "#src/choird/telegram/Pace.ts"
import { settableClock } from "../support/settableClock.ts"
import { allowed, looksAtTimeOfDay, type TimeOfDay } from "../support/timeOfDay.ts"

const SRC = join(import.meta.dirname, "../../src")

/** Where choird looks at the time of day, for what, and how often. Everything else is measured by the clock for spans. */
const TIME_OF_DAY: TimeOfDay = {
  "agents/epochOfRun.ts": ["since when an agent runs, for people", 2],
  "agents/prepareStart.ts": "the beginning of a session's id",
  "agents/runNotices.ts": "the identity of a notice",
  "api/operator/AgentSummaries.ts": "since when an agent runs, for people",
  "api/operator/OperatorSessions.ts": "the age of a job by the times of its events, for people",
  "approvals/Approvals.ts": ["when a stored request expires, in whatever life of choird", 2],
  "skillimports/SkillImports.ts": "the date of a commit",
  "approvals/askApproval.ts": "when a request expires, as it is stored",
  "approvals/askPerson.ts": "how long a stored request waits, for people",
  "approvals/callApprovals.ts": "when a request was decided",
  "approvals/grantRows.ts": ["the date to which a stored grant lasts", 2],
  "approvals/settleApproval.ts": "when a request was decided, and whether that was in time",
  "database/Backup.ts": "the date of a backup",
  "chatcommands/GatewayCommands.ts": ["since when an agent and its jobs run, for people", 2],
  "gateway/Gateways.ts": "how late a message is by the time of its server, for people",
  "gateway/Pairings.ts": "when a code ends, for people",
  "telegram/PollWatch.ts": ["since when a bot is silent, for people", 2],
  "gateway/attachFiles.ts": "the age of files by their dates",
  "telegram/sendUntilTaken.ts": "the age of a stored message, in whatever life of choird",
  "gateway/heldMessages.ts": "when a stored hold ends",
  "hostFits.ts": "whether the clock is set",
  "listeners/TlsIdentity.ts": "the dates of a certificate",
  "logs/Audit.ts": ["the time of a row", 2],
  "logs/LogFiles.ts": ["the time of a line, and the age of archives", 4],
  "memory/Forgetting.ts": "the time of a receipt",
  "memory/Recall.ts": ["the age of what is remembered", 2],
  "memory/idleSessions.ts": "the silence of a session, by the times of its events",
  "memory/remoteEmbedder.ts": "the date of Retry-After",
  "queues/Inbox.ts": ["when a stored hold ends", 3],
  "queues/Outbox.ts": "the age of stored messages, in days",
  "queues/heldRows.ts": "when a stored hold ends",
  "retention/DiskGuard.ts": "the identity of a notice",
  "retention/Retention.ts": "the age of stored rows, in days",
  "retention/SessionArchives.ts": "the date of an archive",
  "retention/WorkspaceUsage.ts": "the day on which a person was told",
  "plans/planLook.ts": ["the times of plans", 4],
  "plans/planOrders.ts": ["the times of plans", 3],
  "plans/planSteps.ts": ["the times of plans", 2],
  "plans/planTools.ts": "the times of plans",
  "gateway/toReminder.ts": "the times of plans",
  "chatcommands/chatPlans.ts": ["the times of plans", 4],
  "chatcommands/planTaps.ts": "the times of plans",
  "schedules/Schedules.ts": "the times of schedules",
  "schedules/slotSteps.ts": ["the times of schedules", 3],
  "sessions/Runs.ts": ["the age of stored runs, in days", 2],
  "sessions/SessionStore.ts": "the beginning of a session's id",
  "sessions/forgetEvents.ts": "the time of an event",
  "trials/TrialContainers.ts": "the beginning of a session's id",
  "trials/webTries.ts": "the beginning of a session's id"
}

describe("a clock that is set", () => {
  for (const by_ms of [-3_600_000, 3_600_000])
    it.effect(`holds back no reply of a bot, by ${by_ms / 3_600_000} hours`, () =>
      Effect.gen(function* () {
        const { clock, set } = yield* settableClock
        const { message } = makePaces()("1")
        const next = Effect.forkChild(Effect.provideService(message, Clock.Clock, clock), { startImmediately: true })
        yield* Fiber.join(yield* next)
        set(by_ms)
        const waiting = yield* next
        yield* TestClock.adjust("999 millis")
        assert.isUndefined(waiting.pollUnsafe())
        yield* TestClock.adjust("1 millis")
        assert.isDefined(waiting.pollUnsafe())
      })
    )
})

it("no code of choird computes a span from the time of day", () => {
  assert.deepStrictEqual(looksAtTimeOfDay(join(SRC, "choird")), allowed(TIME_OF_DAY))
})

it("no code that the programs share looks at the time of day", () => {
  assert.deepStrictEqual(looksAtTimeOfDay(join(SRC, "shared")), {})
})
