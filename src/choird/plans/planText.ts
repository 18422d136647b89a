/** The words of plans, as chats show them. Pure. */
import type { DateTime } from "effect"
import { timeText } from "#src/shared/plans/whenText.ts"
import { wordsOfOthers } from "#src/choird/queues/chatText.ts"
import { shortened } from "#src/shared/text/placeToCut.ts"
import { PLAN_MISSED_MAX, type PlanDecision } from "./decidePlan.ts"
import type { PlanRow } from "./planRows.ts"

/** A message that comes later than this after its time says so. */
const LATE_TOLD_MS = 120_000

/** Characters of a plan's words as a chat shows them: with what is around them they are one message, of which each part begins with Choir's mark. */
const SHOWN_CHARS_MAX = 3000

/** A plan's own words. Further lines are indented, so that none of them looks like a message of Choir's. */
export const planWords = (text: string): string =>
  shortened(wordsOfOthers(text).trim().replaceAll("\n", "\n    "), SHOWN_CHARS_MAX)

const times = (count: number): string =>
  count === 1 ? "1 time" : `${count >= PLAN_MISSED_MAX ? `at least ${PLAN_MISSED_MAX}` : count} times`

/** The message of a plan whose time has come, or has passed. */
export const reminderText = (
  { plan_id, text }: Pick<PlanRow, "plan_id" | "text">,
  { missed, slot_ms, state }: Pick<PlanDecision, "missed" | "slot_ms" | "state">,
  zone: DateTime.TimeZone,
  now_ms: number
): string => {
  const due = timeText(slot_ms, zone, now_ms)
  const words = `Reminder ${plan_id}: ${planWords(text)}`
  if (state === "missed") return `${words}\nThis was due ${times(missed)} while Choir was off, last ${due}.`
  const late = now_ms - slot_ms > LATE_TOLD_MS ? [`It was due ${due}.`] : []
  const earlier = missed > 0 ? [`Before that it passed ${times(missed)} while Choir was off.`] : []
  return [
    words,
    ...[...late, ...earlier]
      .join(" ")
      .split("\n")
      .filter((line) => line !== "")
  ].join("\n")
}
