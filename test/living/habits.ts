/** What the model of the fortnight does with what it is told: it uses the tools that fit, and knows of a fact only what it is shown. */
import { FACTS } from "./facts.ts"
import { BOT } from "./Home.ts"
import type { Done, Habit, Seen } from "./Model.ts"

const did = ({ done }: Seen, tool: string): Done | undefined => done.findLast((one) => one.tool === tool)
const says =
  (pattern: RegExp, ...texts: ReadonlyArray<string>): Habit =>
  ({ words }) =>
    pattern.test(words) ? { text: texts.join("\n") } : undefined

/** What the wizard asks of a model before it takes it. */
const proves: Habit = ({ words }) =>
  words.startsWith("call choir_check") ? { calls: [{ name: "choir_check", input: { word: "ready" } }] } : undefined

const remembers: Habit = (seen) => {
  const [, text] = /Remember that (.+)$/imu.exec(seen.words) ?? []
  if (text === undefined) return undefined
  const kept = did(seen, "choir-memory-upsert")
  if (kept === undefined) {
    const fact = FACTS.find((one) => one.told === text)
    return { calls: [{ name: "choir-memory-upsert", input: { key: fact?.key ?? "user.note", text } }] }
  }
  return { text: kept.result.includes("error") ? `I could not keep it: ${kept.result}` : "I will remember that." }
}

const REMIND = /^Remind me (at \d\d:\d\d) to (.+)$/u

const reminds: Habit = ({ done, words }) => {
  const [, when, text] = REMIND.exec(words) ?? []
  if (when === undefined || text === undefined) return undefined
  const made = done.find(({ tool }) => tool === "choir-plan-set")
  if (made === undefined) return { calls: [{ name: "choir-plan-set", input: { when, text } }] }
  const said = made.result.split("\n").at(-1) ?? ""
  return { text: `${said.charAt(0).toUpperCase()}${said.slice(1)}` }
}

const recalls: Habit = ({ shown, words }) => {
  const fact = FACTS.find((one) => words.includes(one.question))
  if (fact === undefined) return undefined
  if (shown.includes(fact.told)) return { text: fact.answer }
  return { text: shown.includes("From your memory") ? "I am shown other memories." : "I do not know that." }
}

const looksAtPhoto: Habit = ({ pictures, words }) =>
  pictures > 0 && /photo|picture/iu.test(words)
    ? { text: "A receipt of the garden centre: two bags of soil, 11.98 euros." }
    : undefined

const PATH = /\.choirtmp\/recv\/[^\s"',;)]+/u

const readsFile: Habit = (seen) => {
  const [path] = PATH.exec(seen.words) ?? []
  if (path === undefined || !/document/u.test(path)) return undefined
  if (did(seen, "choir-fs-read") === undefined) return { calls: [{ name: "choir-fs-read", input: { path } }] }
  return { text: "It is the packing list for the summer trip: tent, stove, and a map of the lakes." }
}

const readsPage: Habit = (seen) => {
  const [url] = /https:\/\/example\.org\/\S*/u.exec(seen.words) ?? []
  if (url === undefined) return undefined
  const read = did(seen, "choir-web-fetch")
  if (read === undefined) return { calls: [{ name: "choir-web-fetch", input: { url } }] }
  return {
    text: read.result.includes("opens at nine")
      ? "The garden opens at nine and closes at six."
      : `I could not read it: ${read.result}`
  }
}

const keepsNothing: Habit = ({ done, tools, words }) => {
  if (tools.has("choir-session-summary"))
    return {
      calls: [
        {
          name: "choir-session-summary",
          input: {
            title: "A day with Ada",
            summary: "We talked about the day.",
            decisions: [],
            open_points: [],
            facts: []
          }
        }
      ]
    }
  return words.startsWith("<choir-note>\nCompaction:") && done.length === 0
    ? { calls: [{ name: "choir-memory-delta", input: { mode: "append", summary_update: "We talked about the day." } }] }
    : undefined
}

/** A job of its own for what takes long; the job runs one command and says what came of it. */
const startsJob: Habit = (seen) => {
  const [, again] = /Count the words (of the packing list|once more) in the background/u.exec(seen.words) ?? []
  if (seen.isJob || again === undefined) return undefined
  const task_spec = again === "once more" ? `${COUNT} ${AT_ONCE}` : COUNT
  return did(seen, "choir-core-spawn") === undefined
    ? { calls: [{ name: "choir-core-spawn", input: { job_name: "count-words", task_spec } }] }
    : { text: COUNTING }
}
export const COUNTING = "I am counting in the background."
const COUNT = "Count the words of packing.txt with wc."
const AT_ONCE = "Do not wait for anything."
/** Where edge writes while a job runs. */
const MEANWHILE = ".choirtmp/edge/missing.md"

/** What edge does while the job runs, which waits for that. */
const notesMeanwhile: Habit = (seen) => {
  const [, text] = /Meanwhile note that (.+)$/mu.exec(seen.words) ?? []
  if (text === undefined) return undefined
  const wrote = did(seen, "choir-fs-write")
  if (wrote === undefined)
    return { calls: [{ name: "choir-fs-write", input: { path: MEANWHILE, content: `${text}\n`, mode: "append" } }] }
  return { text: wrote.result.includes("missing.md") ? "It is noted." : `I could not note it: ${wrote.result}` }
}

const works: Habit = (seen) => {
  if (!seen.isJob || !seen.shown.includes(COUNT)) return undefined
  const counted = did(seen, "choir-exec")
  const first = seen.shown.includes(AT_ONCE) ? "" : `until [ -e ${MEANWHILE} ]; do sleep 0.1; done; `
  return counted === undefined
    ? { calls: [{ name: "choir-exec", input: { command: `${first}printf 'tent stove map of the lakes' | wc -w` } }] }
    : { text: "The packing list has six words." }
}

const reports: Habit = ({ words }) =>
  words.startsWith("<choir-note>\nReport:") && words.includes("count-words")
    ? { text: "The count is done: the packing list has six words." }
    : undefined

/** What was written in the group is known there alone. */
const tellsOfCarl: Habit = ({ shown, words }) =>
  words.includes("What did Carl ask?")
    ? { text: shown.includes(`@${BOT}`) ? "For the code of a bicycle lock." : "I do not know that." }
    : undefined

const QUESTIONS = {
  name: "open-questions",
  description: "List the questions that are still open in the notes.",
  contract: {
    execution_class: "deterministic",
    does: "finds the lines of notes that end with a question mark",
    does_not: "answer the questions, or change a file",
    state: { questions: { schema: { type: "array", items: { type: "object" } } } },
    state_write: ["questions"],
    assertions: [{ statement: "each question names its file", path: "questions.*.path", op: "exists" }],
    capabilities: ["fs:read"]
  },
  registry: {
    version: "1.0.0",
    tier: "task",
    workflow: [
      {
        step: "Search for lines that end with a question mark.",
        tool: "choir.fs.search",
        params: { pattern: "\\?$", path: ".", glob: "*.md" },
        writes: { questions: "matches" }
      }
    ]
  }
}

const proposes: Habit = (seen) => {
  if (!seen.words.includes("Please learn to list the open questions of my notes")) return undefined
  const asked = did(seen, "choir-propose")
  if (asked === undefined)
    return {
      calls: [
        {
          name: "choir-propose",
          input: {
            kind: "skill",
            proposal: { spec: QUESTIONS, reason: "Ada often asks which questions are open in her notes." }
          }
        }
      ]
    }
  return {
    text: asked.result.includes("was submitted") ? "I have proposed it. I can do it once you approve." : asked.result
  }
}

/** What came of the newest words, in all that the model is shown. */
const sinceWords = ({ shown, words }: Seen) => shown.slice(shown.lastIndexOf(words) + words.length)

const listsQuestions: Habit = (seen) => {
  if (!seen.words.includes("Which questions of my notes are open?")) return undefined
  if (did(seen, "choir-skill-start") === undefined)
    return { calls: [{ name: "choir-skill-start", input: { skill: QUESTIONS.name } }] }
  const since = sinceWords(seen)
  return { text: since.includes("Who calls the landlord?") ? "One: who calls the landlord?" : since }
}

const writesNote: Habit = (seen) => {
  const [, text] = /Write into my notes: (.+)$/mu.exec(seen.words) ?? []
  if (text === undefined) return undefined
  const wrote = did(seen, "choir-fs-write")
  return wrote === undefined
    ? { calls: [{ name: "choir-fs-write", input: { path: "notes.md", content: `${text}\n`, mode: "append" } }] }
    : {
        text:
          wrote.result.startsWith("wrote") || wrote.result.includes("notes.md")
            ? "It is in your notes."
            : `I could not write it: ${wrote.result}`
      }
}

/** What the person has read before a job goes on, so that the order of messages is always the same. */
export const saidBefore = ({ isJob, shown }: Seen): string | undefined =>
  isJob && shown.includes(COUNT) ? COUNTING : undefined

export const HABITS: ReadonlyArray<Habit> = [
  keepsNothing,
  proves,
  works,
  reports,
  startsJob,
  notesMeanwhile,
  tellsOfCarl,
  proposes,
  writesNote,
  listsQuestions,
  remembers,
  reminds,
  recalls,
  looksAtPhoto,
  readsFile,
  readsPage,
  says(/^Say hello in one sentence/u, "Hello, I am choir, and I am ready."),
  says(/good morning$/iu, "Good morning."),
  says(/good evening$/iu, "Good evening."),
  says(/good night$/iu, "Good night."),
  says(/thank you$/iu, "You are welcome.")
]
