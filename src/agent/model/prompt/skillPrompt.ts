/** The text on skills for models: which there are, and of the running one its present step alone. */
import type { Schema } from "effect"
import { skillState, type SkillSpec, type SkillState } from "#schema/Skill.ts"
import { shownName, toWireName } from "#schema/Tool.ts"
import type { ActiveSkill } from "#src/shared/session/State.ts"
import type { Message } from "#src/agent/model/Conversation.ts"
import { SKILL_TRANSITION, skillEvents } from "#src/agent/arbiter/decideSkills.ts"
import { note } from "./instructions.ts"
import type { Find } from "#src/agent/arbiter/Command.ts"
import type { SkillBook } from "#src/agent/image/SkillRegistry.ts"

/** Name and description of each; it never changes within a session's start, so that it stands in the fixed part. */
export const skillList = (skills: SkillBook): string =>
  skills.size === 0
    ? ""
    : [
        "A skill leads you through a kind of work step by step. Begin the one that fits with choir-skill-start:",
        ...[...skills.values()].map(({ description, name }) => `- ${name}: ${description}`)
      ].join("\n")

const transition = (rev: number, find: Find) => {
  const event = find(rev)
  return event?.event_type === "SkillTransitionCommitted" ? event.payload : undefined
}

/** Characters of a skill's input, or of what one of its steps came to, that stand in each request of the lane. */
const VALUE_CHARS_MAX = 16_000
/** Characters of all its steps' results together. */
const STEPS_CHARS_MAX = 48_000
const CUT_CHARS = 1000

/** A value as JSON, `undefined` where it is too long; and its beginning with the way to the rest, for where there is no room. */
const shown = (value: Schema.Json, rev: number) => {
  const text = JSON.stringify(value)
  const begins = text.slice(0, CUT_CHARS).toWellFormed()
  const note = `cut; revision ${rev} of the log has all ${text.length} characters: search it with choir-memory-query`
  return { whole: text.length <= VALUE_CHARS_MAX ? text : undefined, cut: JSON.stringify({ begins, note }) }
}

/** The basis of the step, as data: the skill's input and the results of its earlier steps. */
const context = (skill: ActiveSkill, find: Find): string => {
  const input = shown(transition(skill.started_rev, find)?.input ?? {}, skill.started_rev)
  let room = STEPS_CHARS_MAX
  // The newest first: the present step builds on it.
  const steps = skill.results.toReversed().map(({ rev, state }) => {
    const { cut, whole } = shown(transition(rev, find)?.output ?? null, rev)
    const told = whole !== undefined && whole.length <= room ? whole : cut
    room = Math.max(0, room - told.length)
    return `${JSON.stringify(state)}:${told}`
  })
  return `{"input":${input.whole ?? input.cut},"steps":{${steps.toReversed().join(",")}}}`
}

const outputRule = (spec: SkillSpec, { transitions }: SkillState): ReadonlyArray<string> => {
  const last = transitions.filter(({ to }) => skillState(spec, to)?.terminal === true).map(({ on }) => on)
  return spec.output_schema === undefined || last.length === 0
    ? []
    : [
        `With ${last.join(" or ")} the skill ends; its output must fit this schema: ${JSON.stringify(spec.output_schema)}`
      ]
}

/** The names of Choir's tools as the model sees them, in a text of a skill's author, who may write them either way. */
const withShownNames = (text: string): string => text.replaceAll(/\bchoir(?:\.[a-z][a-z0-9_]*)+/gu, shownName)

/** The lane's present step, or nothing when no skill is at work. */
export const skillStep = (skill: ActiveSkill | undefined, skills: SkillBook, find: Find): ReadonlyArray<Message> => {
  const spec = skill === undefined ? undefined : skills.get(skill.name)
  const state = spec === undefined || skill === undefined ? undefined : skillState(spec, skill.state)
  if (skill === undefined || spec === undefined || state === undefined) return []
  const lines = [
    `You are in the step ${skill.state} of the skill ${skill.name}; ${skill.step} of its ${spec.max_steps} model calls are used.`,
    `Objective: ${withShownNames(state.objective ?? "")}`,
    `Tools of this step: ${state.allowed_tools.map(toWireName).join(", ") || "none"}. Leave it with ${toWireName(SKILL_TRANSITION)}, on: ${skillEvents(spec, state).join(", ")}.`,
    ...outputRule(spec, state),
    `Context: ${context(skill, find)}`
  ]
  return [note(lines.join("\n"))]
}
