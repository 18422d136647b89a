/** Skills whose triggers match a message or a job. Pure; it decides nothing. */
import type { CoreJobStart } from "#schema/Core.ts"
import type { SkillSpec } from "#schema/Skill.ts"
import { foldedWords, holdsWords } from "#src/shared/text/foldedWords.ts"
import { ownWords } from "#src/shared/text/quotedWords.ts"
import { withoutEnd } from "#src/shared/text/withoutEnd.ts"

/** Triggers of an agent's skills that are looked at. */
const TRIGGERS_MAX = 200
/** Characters of a text that are looked at. */
const TEXT_CHARS_MAX = 20_000

type Trigger = NonNullable<SkillSpec["registry"]>["triggers"][number]

/** A skill with the trigger of it that matches. */
export interface Triggered {
  readonly skill: SkillSpec["name"]
  readonly trigger: Trigger
}

const folded = (text: string): string => foldedWords(text.slice(0, TEXT_CHARS_MAX))

const dotted = (name: string): string => name.replaceAll("-", ".").toLowerCase()

/** Whether a text names a tool in either spelling. */
const names = (text: string, tool: string): boolean =>
  text
    .slice(0, TEXT_CHARS_MAX)
    .split(/[^\w.-]+/u)
    .some((word) => dotted(withoutEnd(word, ".-")) === dotted(tool))

const matching = (
  skills: ReadonlyMap<string, SkillSpec>,
  fits: (trigger: Trigger) => boolean
): ReadonlyArray<Triggered> => {
  const all = [...skills.values()].flatMap(({ name, registry }) =>
    (registry?.triggers ?? []).map((trigger) => ({ skill: name, trigger }))
  )
  return all.slice(0, TRIGGERS_MAX).filter(({ trigger }) => fits(trigger))
}

/** The skills that a message to edge calls for. */
export const messageTriggers = (skills: ReadonlyMap<string, SkillSpec>, message: string): ReadonlyArray<Triggered> => {
  // What a person quotes is nothing that they ask for.
  const text = ownWords(message)
  const words = folded(text)
  return matching(
    skills,
    ({ kind, match }) => (kind === "keyword" && holdsWords(words, match)) || (kind === "tool" && names(text, match))
  )
}

/** The skills that a job calls for by the words of its task, its tools, or its type and pool. */
export const jobTriggers = (
  skills: ReadonlyMap<string, SkillSpec>,
  { agent_type, pool, task_spec, tool_constraints }: Omit<CoreJobStart, "job_id">
): ReadonlyArray<Triggered> => {
  const words = folded(task_spec)
  return matching(skills, ({ kind, match }) => {
    if (kind === "keyword") return holdsWords(words, match)
    if (kind === "tool") return tool_constraints.allowed_tools.some((tool) => tool === dotted(match))
    return kind === "task_type" && (match === agent_type || match === pool)
  })
}

/** A trigger as the event of a beginning names it. */
export const triggerText = ({ trigger: { kind, match } }: Triggered): string => `${kind}: ${match}`
