/** What the simulated model says next: sensible steps of a conversation and of jobs, and now and then what no program expects. */
import { type Asked, isCompaction } from "./asked.ts"
import type { Faults } from "./Faults.ts"
import { OUTSIDE, withOutside } from "./outsideText.ts"
import type { Seed } from "./Seed.ts"
import type { Setup } from "./Setup.ts"
import { ASKED_NICELY, CONTRACT_INPUT } from "./skills.ts"
import { EVENT_BYTES_MAX } from "#src/shared/events/storedPayload.ts"

interface Call {
  readonly name: string
  /** An object, or the raw text of arguments that are none. */
  readonly args: unknown
}

export interface Said {
  readonly text?: string
  readonly calls: ReadonlyArray<Call>
}

/** Names of jobs; few, so that they are taken now and then. */
export const JOBS = ["alpha", "beta", "gamma", "delta", "omega"] as const
const PATHS = ["a", "b", "dir/a", "dir/b", "dir", "./a", "dir/../b"] as const
const TOOLS = [
  "sim-look",
  "sim-look",
  "sim-look",
  "sim-edit",
  "sim-edit",
  "sim-move",
  "sim-sweep",
  "sim-send",
  "sim-post"
] as const
/** Words of a job that one event can hold, and the event of its end beside a summary of them cannot. */
const LAST_WORDS_CHARS = EVENT_BYTES_MAX - 2048
const SCHEMA = { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] }

/** Who asks: edge has the tool that spawns, a core the one that reports; what is to be remembered is asked in a note, or without both tools. */
const roleOf = (asked: Asked): "edge" | "core" | "summary" | "judge" => {
  if (asked.tools.includes("choir-skill-verdict")) return "judge"
  if (isCompaction(asked)) return "summary"
  if (asked.tools.includes("choir-core-spawn")) return "edge"
  return asked.tools.includes("choir-core-report") ? "core" : "summary"
}

/** A job's account of its work. */
const WRITEBACK: Call = {
  name: "choir-core-writeback",
  args: { status: "done", progress: 100, summary: "it is done", reflection: { tests_run: [], blockers: [] } }
}

const says = (text: string): Said => ({ text, calls: [] })

export class Script {
  readonly #faults: Faults
  readonly #draw: Seed
  /** Names of skills; none in most seeds. */
  readonly #skills: ReadonlyArray<string>
  readonly #hasContracts: boolean
  readonly #proposes: boolean
  readonly #hands: boolean
  /** Things to say yet that hardly fit an event; few, since each costs as much as a whole conversation. */
  #large: number
  readonly #busy: boolean
  readonly #heeds: boolean
  readonly #forgets: boolean
  /** Whether a failed job may be started again where it stopped. */
  readonly #resumes: boolean
  /** The same for the last words of jobs. */
  #long: number
  /** Lanes whose model repeats itself, with what it says and how often yet. */
  readonly #stuck = new Map<string, { readonly said: Said; left: number }>()
  #count = 0
  /** The job that was asked for last, which probably runs. */
  #newest: string = JOBS[0]

  constructor(
    faults: Faults,
    draw: Seed,
    {
      busy,
      forgets,
      heeds,
      large,
      proposes,
      servers,
      skills
    }: Pick<Setup, "busy" | "forgets" | "heeds" | "large" | "proposes" | "servers" | "skills">
  ) {
    this.#busy = busy
    this.#heeds = heeds
    this.#forgets = forgets
    this.#resumes = Object.keys(servers).length > 0
    this.#hands = large
    this.#large = large ? 3 : 0
    this.#long = large ? 1 : 0
    this.#faults = faults
    this.#draw = draw
    this.#skills = [...skills.keys()]
    this.#hasContracts = this.#skills.some((name) => Object.hasOwn(CONTRACT_INPUT, name))
    this.#proposes = proposes
  }

  next(asked: Asked): Said {
    const said = this.#next(asked)
    if (!asked.messages.some(({ content }) => content?.includes(OUTSIDE) === true)) return said
    const { calls, text } = said
    return {
      ...(text === undefined || text.startsWith("{") ? said : { ...said, text: `${text} ${OUTSIDE}` }),
      calls: calls.map(({ args, name }) => ({ name, args: withOutside(args) }))
    }
  }

  #next(asked: Asked): Said {
    const role = roleOf(asked)
    if (role === "judge") return this.#verdict()
    const wantsJson = asked.messages.some(({ content, role }) => role === "user" && (content ?? "").includes('"ok"'))
    const final = wantsJson ? '{"ok":true}' : `said ${++this.#count}`
    const step = asked.messages.findLast(({ content }) =>
      /You are in the step|No skill is running:/u.test(content ?? "")
    )
    const isInSkill = role !== "summary" && step?.content?.includes("You are in the step") === true
    if (isInSkill && !this.#faults.calm && this.#hands && role === "edge" && this.#draw.chance(0.5))
      return { calls: [this.#spawn()] }
    const state = /You are in the step (\w+).*which is at the end/su.exec(step?.content ?? "")?.[1]
    if (isInSkill && !this.#faults.calm && state !== undefined) return this.#contract(state, final)
    if (isInSkill) return this.#faults.calm ? says(final) : this.#skill(final)
    if (role === "summary") return this.#summary(asked)
    if (this.#faults.calm) return says(final)
    const begins = this.#hasContracts ? 0.5 : this.#hands && role === "core" ? 0.4 : 0.15
    if (this.#skills.length > 0 && this.#draw.chance(begins)) return { calls: [this.#start(), ...this.#more()] }
    if (this.#proposes && this.#draw.chance(0.25)) return { calls: [this.#propose(), ...this.#more()] }
    const lane =
      role === "edge" ? "edge" : (asked.messages.find((message) => message.role === "user")?.content ?? "").slice(0, 60)
    const stuck = this.#stuck.get(lane)
    if (stuck !== undefined && --stuck.left > 0) return stuck.said
    this.#stuck.delete(lane)
    if (this.#faults.active("hostile-model") && this.#draw.chance(this.#faults.rates.hostile))
      return this.#hostile(lane)
    return role === "edge" ? this.#edge(final) : this.#core(final)
  }

  /** Honest providers count no more than was sent and allowed. */
  usage(
    { max_tokens }: Asked,
    prompt_tokens: number
  ): { readonly prompt_tokens: unknown; readonly completion_tokens: unknown } {
    const draw = this.#draw
    if (this.#faults.active("hostile-model") && draw.chance(0.1))
      return { prompt_tokens: draw.pick([-1, 0.5, "many", 1e21, 30_000]), completion_tokens: draw.pick([null, 30_000]) }
    return {
      prompt_tokens: Math.floor(prompt_tokens),
      completion_tokens: draw.below(max_tokens)
    }
  }

  #tool(): Call {
    const draw = this.#draw
    const args = {
      path: draw.pick(PATHS),
      ms: draw.chance(0.9) ? draw.below(1500) : draw.below(9000),
      note: String(draw.below(3))
    }
    return { name: draw.pick(TOOLS), args }
  }

  #tools(): ReadonlyArray<Call> {
    return Array.from({ length: this.#draw.pick([1, 1, 2, 3, 6]) }, () => this.#tool())
  }

  /** More at once than may run, for as long as a tool may take. */
  #slowTools(): ReadonlyArray<Call> {
    const draw = this.#draw
    const name = draw.pick(["sim-look", "sim-look", "sim-send"])
    return Array.from({ length: 10 }, (_, index) => {
      return { name, args: { path: "slow", ms: draw.between(5000, 7500), note: `${++this.#count} ${index}` } }
    })
  }

  #spawn(): Call {
    const draw = this.#draw
    if (this.#resumes && draw.chance(0.15))
      return {
        name: "choir-core-spawn",
        args: { job_name: this.#newest, task_spec: `again ${++this.#count}`, resume: true }
      }
    this.#newest = draw.pick(JOBS)
    const args = {
      job_name: this.#newest,
      task_spec: `task ${++this.#count}`,
      ...(this.#heeds ? this.#nicely() : {}),
      ...(draw.chance(0.2) ? { output_schema: SCHEMA } : {}),
      ...(draw.chance(0.3)
        ? {
            tool_constraints: {
              allowed_tools: draw.chance(0.7) ? ["sim.look", "sim.edit"] : [],
              time_budget_ms: draw.pick([0, 4000, 20_000])
            }
          }
        : {}),
      ...(this.#skills.length > 0 && draw.chance(0.4) ? { skill: this.#begun("name") } : {})
    }
    return { name: "choir-core-spawn", args }
  }

  /** A job that owes an account of its work, and one that begins a skill by its words. */
  #nicely(): Readonly<Record<string, string>> {
    const draw = this.#draw
    return {
      ...(draw.chance(0.5) ? { task_spec: `task ${this.#count} ${ASKED_NICELY}` } : {}),
      ...(draw.chance(0.7) ? { agent_type: "scout" } : {})
    }
  }

  /** Now and then more in the same breath, which belongs to the state before. */
  #more(): ReadonlyArray<Call> {
    return this.#draw.chance(0.3) ? this.#tools() : []
  }

  #skillName(): string {
    if (this.#hands && this.#draw.chance(0.6)) return "hand"
    return this.#skills[this.#draw.below(this.#skills.length)] ?? ""
  }

  #start(): Call {
    return { name: "choir-skill-start", args: this.#begun("skill") }
  }

  /** A skill with what it begins with, which now and then is missing. */
  #begun(key: "name" | "skill"): Readonly<Record<string, unknown>> {
    const skill = this.#skillName()
    const input = CONTRACT_INPUT[skill]
    return { [key]: skill, ...(input !== undefined && this.#draw.chance(0.85) ? { input } : {}) }
  }

  /** In a step of a skill with a STATE: fields of its own and others, results of all kinds, sure and unsure. */
  #contract(state: string, final: string): Said {
    const draw = this.#draw
    const roll = draw.unit()
    if (roll < 0.06) return says(final)
    if (roll < 0.25) return { calls: this.#tools() }
    const own = state === "weigh" ? { weight: draw.below(100) } : { report: { ok: draw.chance(0.15) } }
    const others = [{ goods: "stolen" }, { weight: "heavy" }, { report: 7 }, { secret: 1 }, {}] as const
    const args = {
      on: draw.pick([
        "complete",
        "complete",
        "complete",
        "complete",
        "complete",
        "complete",
        "revise",
        "error",
        "cancel"
      ]),
      writes: draw.chance(0.85) ? own : draw.pick<object>(others),
      ...(draw.chance(0.7) ? { confidence: draw.pick([0.9, 0.7, 0.4]) } : {}),
      ...(draw.chance(0.2) ? { judge_blocks: [{ id: "a", text: "heavy" }] } : {})
    }
    const move = { name: "choir-skill-transition", args }
    return { calls: draw.chance(0.15) ? [move, move] : [...this.#more(), move] }
  }

  /** A judge's answer, of which only some are verdicts. */
  #verdict(): Said {
    const draw = this.#draw
    const verdict = () => ({
      name: "choir-skill-verdict",
      args: draw.pick<object>([
        { score: 0.9, unsupported: [] },
        { score: 0.7, unsupported: [] },
        { score: 0.69, unsupported: [] },
        { score: 1, unsupported: ["a"] },
        { score: "1", unsupported: [] },
        { score: 2, unsupported: [] },
        { score: 1 }
      ])
    })
    const roll = draw.unit()
    if (roll < 0.1) return says("the score is 1")
    return { calls: roll < 0.2 ? [verdict(), verdict()] : [verdict()] }
  }

  /** A change of the agent itself. */
  #propose(): Call {
    const change = [{ op: "set", path: "/budgets/turn_max_steps", value: this.#draw.between(1, 9) }]
    return {
      name: "choir-propose",
      args: { kind: "config_change", proposal: { change, reason: `reason ${++this.#count}` } }
    }
  }

  /** In a step of a skill: its tools and others, its transitions and others, two of them, words. */
  #skill(final: string): Said {
    const draw = this.#draw
    const move = (): Call => ({
      name: "choir-skill-transition",
      args: { on: draw.pick(["complete", "complete", "revise", "cancel", "done", "error"]), output: { ok: true } }
    })
    const roll = draw.unit()
    if (roll < 0.1) return says(final)
    if (roll < 0.45) return { calls: this.#tools() }
    if (roll < 0.55) return { calls: [move(), move(), ...this.#more()] }
    if (roll < 0.6) return { calls: [this.#start()] }
    return { calls: [...this.#more(), move()] }
  }

  #edge(final: string): Said {
    const draw = this.#draw
    const job_name = draw.chance(0.7) ? this.#newest : draw.pick(JOBS)
    if (this.#busy && draw.chance(0.5))
      return { calls: draw.chance(0.6) ? [this.#tool()] : [this.#spawn(), this.#spawn()] }
    if (this.#heeds && draw.chance(0.4)) return { calls: [this.#spawn()] }
    const roll = draw.unit()
    if (roll < 0.35) return says(final)
    if (roll < 0.6) return { calls: this.#tools() }
    // What edge writes and the spawn of a job in one breath: the job must not begin before the write has ended.
    if (roll < 0.7) return { calls: [...this.#tools(), this.#spawn()] }
    if (roll < 0.86) return { calls: Array.from({ length: draw.pick([1, 1, 2, 4]) }, () => this.#spawn()) }
    if (roll < 0.92) {
      const inject = () => ({ name: "choir-core-inject", args: { job_name, content: `also ${++this.#count}` } })
      return { calls: Array.from({ length: draw.pick([1, 1, 3]) }, inject) }
    }
    if (roll < 0.96) return { calls: [{ name: "choir-core-cancel", args: { job_name } }] }
    if (roll < 0.98) return { calls: [{ name: "choir-memory-compact", args: {} }] }
    return { text: "let me see", calls: [{ name: "choir-core-list", args: {} }, this.#tool()] }
  }

  #core(final: string): Said {
    const draw = this.#draw
    if (this.#busy && draw.chance(0.6)) return { calls: this.#slowTools() }
    if (this.#heeds && draw.chance(0.2)) return { calls: [WRITEBACK] }
    const roll = draw.unit()
    if (roll < 0.22 && this.#long > 0) {
      this.#long--
      return says("x".repeat(LAST_WORDS_CHARS))
    }
    if (roll < 0.22) return says(draw.chance(0.1) ? "not what was asked for" : final)
    if (roll < 0.32) {
      const kind = draw.pick(["progress", "plan", "need_info", "partial_result"])
      return { calls: [{ name: "choir-core-report", args: { kind, text: `report ${++this.#count}` } }] }
    }
    return { calls: this.#tools() }
  }

  /** What to remember of events that leave a window; now and then nothing that fits. */
  #summary({ messages, tools }: Asked): Said {
    const draw = this.#draw
    if (tools.includes("choir-session-summary")) return this.#sessionSummary()
    const hash = /hash ([0-9a-f]{12})/u.exec(messages.findLast(({ role }) => role === "user")?.content ?? "")?.[1]
    const kind = this.#faults.active("hostile-model") ? draw.below(6) : 0
    if (kind === 5 || this.#forgets) return says("I would rather talk")
    if (kind === 4) return { calls: [{ name: "choir-memory-delta", args: { mode: "burn" } }] }
    if (this.#large > 0 && hash !== undefined && draw.chance(0.5)) {
      this.#large--
      const args = { mode: "append", add_references: Array.from({ length: 4300 }, () => hash) }
      return { calls: Array.from({ length: 7 }, () => ({ name: "choir-memory-delta", args })) }
    }
    const args = {
      mode: draw.chance(0.8) ? "append" : "overwrite",
      summary_update: `remembered ${++this.#count}`,
      ...(hash === undefined ? {} : { add_references: [hash] }),
      ...(draw.chance(0.3) ? { add_facts: [{ key: `key ${draw.below(5)}`, value: "a fact" }] } : {})
    }
    return { calls: [{ name: "choir-memory-delta", args }] }
  }

  /** What there is to say of the whole session. */
  #sessionSummary(): Said {
    const draw = this.#draw
    const list = () => Array.from({ length: draw.below(3) }, () => `point ${draw.below(100)}`)
    const args = { title: "a session", summary: `summed up ${++this.#count}`, decisions: list(), open_points: list() }
    if (this.#faults.active("hostile-model") && draw.chance(0.5))
      return draw.chance(0.5) ? says("goodbye") : { calls: [{ name: "choir-session-summary", args }] }
    return { calls: [{ name: "choir-session-summary", args: { ...args, facts: list() } }] }
  }

  #hostile(lane: string): Said {
    const draw = this.#draw
    const tool = this.#tool()
    switch (draw.below(8)) {
      case 0:
        return { calls: [{ name: "rm-rf", args: {} }, tool] }
      case 1:
        return { calls: [{ name: tool.name, args: "{not json" }] }
      case 2:
        return {
          calls: [
            { name: tool.name, args: { path: 7 } },
            { name: "choir-core-spawn", args: { job_name: "../x" } }
          ]
        }
      case 3:
        return { calls: Array.from({ length: draw.pick([33, 32, 20]) }, () => this.#tool()) }
      case 4:
        return { calls: [{ name: tool.name, args: { path: draw.pick(["../../etc", "", "a\0b", "\ud800"]), ms: 1 } }] }
      case 5:
        return { text: "\0\ud800", calls: [] }
      default: {
        const said = { calls: [{ name: draw.chance(0.2) ? "no-such-tool" : tool.name, args: tool.args }] }
        this.#stuck.set(lane, { said, left: draw.pick([6, 12, 30]) })
        return said
      }
    }
  }
}
