/** A rehearsal in words, for the person who decides. Pure. */
import type { Rehearsal } from "#schema/Trial.ts"
import { visibleLine } from "./approvalText.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"

/** Characters of one reason: a model may have written parts of it. */
const REASON_CHARS_MAX = 300
/** Reasons of one session: an output with a thousand shorter lists would be as many. */
const REASONS_MAX = 5

const reasonsText = (reasons: ReadonlyArray<string>): string => {
  const shown = reasons.slice(0, REASONS_MAX).map((reason) => firstPart(visibleLine(reason), REASON_CHARS_MAX))
  const left = reasons.length - shown.length
  return [...shown, ...(left > 0 ? [`and ${left} more`] : [])].join("; ")
}

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`

/** The first line, which is all that a small screen shows. */
const headline = ({ kind, problem, runs }: Rehearsal): string => {
  if (runs.length === 0) return `Not rehearsed: ${problem ?? "there is no recorded run"}.`
  const worse = runs.filter(({ verdict }) => verdict === "worse").length
  const better = runs.filter(({ verdict }) => verdict === "better").length
  const rehearsed = runs.filter(({ verdict }) => verdict !== "not_rehearsed").length
  if (rehearsed === 0)
    return kind === "tool"
      ? `Not rehearsed: today's tool could be repeated on none of ${counted(runs.length, "recorded session")}.`
      : `Not rehearsed: today's skill completes none of ${counted(runs.length, "recorded run")}.`
  const where = `on ${counted(rehearsed, kind === "tool" ? "recorded session" : "recorded run")}`
  if (worse > 0) return `Rehearsal ${where}: WORSE than today on ${worse}.`
  return better > 0
    ? `Rehearsal ${where}: better than today on ${better}, worse on none.`
    : `Rehearsal ${where}: no worse than today, and no better.`
}

/** The line about the program of a tool. An earlier Choir ran none. */
const programText = ({ program }: Rehearsal): string => {
  if (program === undefined) return "The tool's program did not run: only its manifest was compared."
  if (program.problem !== undefined)
    return `The tool's program did not run: only its manifest was compared, since ${firstPart(visibleLine(program.problem), REASON_CHARS_MAX)}.`
  return `The tool's program ran on ${counted(program.calls, "recorded call")} beside today's: in an empty workspace, without a network and without secrets.`
}

export const rehearsalText = (rehearsal: Rehearsal): string => {
  const { cost_usd, kind, problem, runs } = rehearsal
  const lines = runs.map(({ reasons, session_id, verdict }) => {
    const said = reasonsText(reasons)
    if (verdict === "not_rehearsed") return `- session ${session_id}: not rehearsed: ${said}`
    return `- session ${session_id}: ${verdict}${said === "" ? "" : `: it ${said}`}`
  })
  const closing = [
    ...(runs.length > 0 && problem !== undefined ? [`Further runs were left out: ${problem}.`] : []),
    ...(runs.length > 0
      ? [
          `Nothing was done: every call ${kind === "tool" ? "of a skill " : ""}was answered from the record. Cost: ${cost_usd.toFixed(4)} USD.`,
          ...(kind === "tool" ? [programText(rehearsal)] : [])
        ]
      : [])
  ]
  return [headline(rehearsal), ...lines, ...closing].join("\n")
}
