/**
 * Exactly one fault at the n-th input or output of a simulation (R4): what a message, an answer or a query may meet with on its way,
 * and the death of a program beside it. Nothing is drawn, so that a simulation without such a fault takes the steps that it always took.
 */

/** Where something enters or leaves a program. */
export type IoPlace = "request" | "answer" | "query"

/** The faults, with the places that each of them concerns. */
export const IO_FAULTS = {
  /** A request, or a delivery to a person, does not arrive. */
  "request-lost": ["request"],
  /** A request arrives twice. */
  "request-twice": ["request"],
  /** What was asked for was done, and the answer is lost. */
  "answer-lost": ["answer"],
  /** A message is lost, and nothing passes on its wire for a while after it. */
  cut: ["request", "answer"],
  /** The database fails before it commits. */
  "query-refused": ["query"],
  /** The database commits, and choird hears of a failure. */
  "query-unheard": ["query"],
  /** The agent's process dies. */
  "agent-crash": ["request", "answer", "query"],
  /** choird dies, after the query of that moment was committed. */
  "choird-crash": ["request", "answer", "query"]
} as const satisfies Readonly<Record<string, ReadonlyArray<IoPlace>>>
export type IoFaultKind = keyof typeof IO_FAULTS

export const IO_FAULT_KINDS = Object.keys(IO_FAULTS) as ReadonlyArray<IoFaultKind>

/** How long a cut wire stays cut, in ms. */
export const CUT_MS = 5000

export interface IoFaultOptions {
  readonly kind: IoFaultKind
  /** Which of all inputs and outputs, from 1; 0 strikes nowhere. */
  readonly at: number
}

export class IoFault {
  readonly #options: IoFaultOptions | undefined
  #crash: "agent" | "choird" | undefined
  /** What the run's inputs and outputs were until now, in their order. */
  readonly places: Array<IoPlace> = []

  constructor(options: IoFaultOptions | undefined) {
    this.#options = options
  }

  /** Whether the fault lies behind. */
  get struck(): boolean {
    return this.#options !== undefined && this.places.length >= this.#options.at
  }

  /** Counts an input or output; answers the fault that it meets with. A crash is carried out after the step that runs. */
  meets(place: IoPlace): IoFaultKind | undefined {
    if (this.#options === undefined) return undefined
    const { at, kind } = this.#options
    const concerned: ReadonlyArray<IoPlace> = IO_FAULTS[kind]
    if (this.places.push(place) !== at || !concerned.includes(place)) return undefined
    if (kind === "agent-crash") this.#crash = "agent"
    if (kind === "choird-crash") this.#crash = "choird"
    return kind
  }

  /** Who has to die now; told once. */
  crash(): "agent" | "choird" | undefined {
    const who = this.#crash
    this.#crash = undefined
    return who
  }
}
