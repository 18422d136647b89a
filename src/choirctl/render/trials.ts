/** Tools and skills that were tried, for people. */
import type { ReportLine, TriedSkill, TriedTool } from "#schema/ContainedTrial.ts"
import type { Acted } from "#schema/Source.ts"
import { fields, safeLine, safeText, span } from "#src/choirctl/terminal/text.ts"
import { plural } from "#src/shared/text/counts.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"

const ACTED: Readonly<Record<Acted, string>> = {
  verified: "verified: the result was read back, or the service returned its id",
  accepted: "accepted: the service accepted it; the result was not read back",
  unknown: "unknown: it may or may not have happened"
}

/** Characters of an output that a person is shown; --json has all of it. */
const OUTPUT_CHARS_MAX = 8000

const outputText = (output: unknown): string => {
  const text = typeof output === "string" ? output : JSON.stringify(output, undefined, 2)
  const part = firstPart(text, OUTPUT_CHARS_MAX)
  return part.length === text.length
    ? safeText(text)
    : `${safeText(part)}\n… ${text.length - part.length} more characters; --json prints them`
}

const sourcesText = (sources: ReadonlyArray<string> | undefined): string =>
  sources === undefined ? "none: it is not text from outside" : `untrusted, from ${sources.join(", ")}`

export const triedToolText =
  (tool: string) =>
  (tried: TriedTool): string => {
    if (tried.type === "asks") return `${safeLine(tool)} was not called: ${safeLine(tried.why)}`
    const { acted, duration_ms, effect, output, sources, status, summary } = tried
    const rows: ReadonlyArray<readonly [string, string]> = [
      ["result", `${status} in ${span(duration_ms)}`],
      ["summary", safeLine(summary)],
      ["effect", effect],
      ["source", sourcesText(sources)],
      ...(acted === undefined
        ? effect === "external"
          ? ([["acted", "no: nothing happened outside"]] as const)
          : []
        : ([["acted", ACTED[acted]]] as const))
    ]
    return [fields(rows), ...(output === undefined ? [] : ["", outputText(output)])].join("\n")
  }

const phaseLines = (line: Extract<ReportLine, { readonly type: "phase" }>): ReadonlyArray<string> => {
  const { checks = [], confidence, ended, on, reason, state, verdict } = line
  const where =
    ended === undefined ? `phase ${safeLine(state)}` : `end (${ended})${state === "" ? "" : ` in ${safeLine(state)}`}`
  return [
    `${where}${on === "" ? "" : ` by ${safeLine(on)}`}${reason === undefined ? "" : `: ${safeLine(reason)}`}`,
    ...(confidence === undefined ? [] : [`  confidence ${confidence}`]),
    ...checks.map(
      ({ detail, ok, statement }) =>
        `  ${ok ? "holds" : "FAILS"}: ${safeLine(statement)}${ok ? "" : ` (${safeLine(detail)})`}`
    ),
    ...(verdict === undefined ? [] : [`  judge ${safeLine(verdict.model)}: ${verdict.score}`])
  ]
}

const callLine = ({
  held_back,
  input,
  sources,
  status,
  summary,
  tool
}: Extract<ReportLine, { readonly type: "call" }>): string => {
  const outcome = held_back ? "not called, since it acts outside; answered as done" : `${status}: ${safeLine(summary)}`
  const from = sources === undefined ? "" : ` [from ${sources.join(", ")}]`
  return `  ${safeLine(tool)} ${safeLine(input)}\n    ${outcome}${from}`
}

const costText = ({ cost_usd, judge_calls, model_calls, tokens }: TriedSkill): string => {
  if (model_calls === 0) return "no model was asked"
  const judge = judge_calls === 0 ? "" : `, ${judge_calls} of them the judge's`
  const cost = cost_usd === undefined ? "its price is not known" : `${cost_usd.toFixed(4)} USD`
  return `${plural(model_calls, "model call")}${judge}, ${plural(tokens, "token")}, ${cost}`
}

export const triedSkillText = (tried: TriedSkill): string => {
  const { changed, duration_ms, left_out, lines, outcome, output, skill, summary } = tried
  return [
    ...lines.flatMap((line) => (line.type === "phase" ? phaseLines(line) : [callLine(line)])),
    ...(left_out === 0 ? [] : [`… ${plural(left_out, "more line")}`]),
    "",
    fields([
      ["skill", skill],
      ["outcome", `${outcome} in ${span(duration_ms)}`],
      ["summary", safeLine(summary)],
      ["changed", changed.length === 0 ? "no file" : `${changed.map(safeLine).join(", ")} (of the copy)`],
      ["cost", costText(tried)]
    ]),
    ...(output === undefined ? [] : ["", outputText(output)])
  ].join("\n")
}
