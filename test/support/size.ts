/**
 * The two sizes of the tests. `CHOIR_TEST_SIZE=ci`, the default, is for every commit; `full` is for a release. Both cover the same
 * subjects: `full` repeats them more often and in more places, and has four bounds that need the longer run (docs/testing.md). A test that is left out at size `ci` is not
 * registered, so that a skipped test always means a missing part of the machine.
 */
const asked = process.env["CHOIR_TEST_SIZE"] ?? "ci"
if (asked !== "ci" && asked !== "full") throw new Error(`CHOIR_TEST_SIZE is ci or full, not "${asked}"`)

export const isFull = asked === "full"

const of = <A>(ci: A, full: A): A => (isFull ? full : ci)

/** A number that the environment may set for one long run. */
const asSet = (name: string, otherwise: number): number => Number(process.env[name] ?? otherwise)

export const SIZE = {
  /** Seeds of the simulation. */
  seeds: of(20, 300),
  /** How a run of the simulation is shared out. A process has run some 7 s until it is warm, which a few seeds do not repay. */
  simulationWorkers: of<ReadonlyArray<string>>(["--workers", "1"], []),
  /** The families of addresses of a host that reaches every outside service. */
  outsideFamilies: of<ReadonlyArray<"IPv4" | "IPv6" | "both">>(["both"], ["IPv4", "IPv6", "both"]),
  /** Seeds that run twice to be compared. */
  seedsTwice: of(2, 6),
  /** One of so many planted bugs is looked for by its known seed. */
  bugEvery: of(2, 1),
  /** Further seeds of each planted bug beside the known one. */
  freshSeeds: of(0, 20),
  /** One of so many inputs and outputs meets with a fault: a prime, so that each kind of fault still has its turn at each kind of place. */
  ioFaultEvery: of(19, 1),
  /** Steps of one life of an agent that loops with a strict provider. */
  loopSteps: of(25, 100),
  /** Steps of a job and turns of a chat whose prompts providers find in their caches, and the least share that they find of all of them. */
  cachedSteps: of(15, 200),
  cachedTurns: of(9, 100),
  cachedShare: of(0.7, 0.97),
  /** Steps of a job and turns of a chat in one history with everything else, and the tokens of its windows. */
  historySteps: of(20, 200),
  historyTurns: of(12, 100),
  historyWindow: of(1500, 50_000),
  /** Turns of a chat that is asked for its facts over sockets, the tokens of its window, and how often that is compacted at least. */
  recallTurns: of(30, 300),
  recallWindow: of(900, 4500),
  recallCompactions: of(2, 5),
  /** Jobs of 200 steps whose provider breaks off. */
  longJobs: asSet("CHOIR_LONG_JOBS", of(3, 100)),
  /** Seeds of which each lets an agent crash one to four times in a row. */
  crashesInARow: of(15, 150),
  /** Kills of one kind of process in the chaos tests. */
  kills: of(3, 30),
  /** Kills of choird while its configuration changes. */
  configKills: of(5, 20),
  /** Kills of a process that sends a mail. */
  mailKills: asSet("CHOIR_MAIL_KILLS", of(8, 1000)),
  /** Histories of one fact each, that sessions tell, correct and forget. */
  factHistories: asSet("CHOIR_FACT_HISTORIES", of(15, 1000)),
  /** Mails of the folder that is searched. */
  mailsOfFolder: of(1000, 10_000),
  /** Seconds for which twenty people write fifty messages a second. */
  rateSeconds: of(20, 600),
  /** Swaps of a path while it is walked. */
  swaps: asSet("SWAPS", of(1000, 12_000)),
  /** Hostile paths that a container asks for. */
  containerPaths: asSet("PATHS", of(300, 2000)),
  /** Hostile paths that the workspace is asked for. */
  workspacePaths: of(1000, 10_000),
  /** Requests without a token. */
  fuzzRequests: of(2000, 20_000),
  /** Runs of random skills that are counted against their bound. */
  skillRuns: of(60, 600),
  /** Inputs that were made to hide from a card what they reach. */
  hostileCards: of(2000, 10_000),
  /** Model answers that no skill lets through. */
  skillAnswers: of(1000, 10_000),
  /** Starts and stops of a container. */
  containerCycles: asSet("CHOIR_CYCLES", of(3, 50)),
  /** Starts and stops of a whole agent. */
  agentCycles: asSet("CHOIR_CYCLES", of(3, 20)),
  /** Elements of a page that is made to be large. */
  domNodes: of(5000, 1_000_000),
  /** Every so many of the pages that a browser is tried on. */
  pageStep: of(14, 1),
  /** Starts and stops of a browser. */
  browserCycles: asSet("CHOIR_BROWSER_CYCLES", of(2, 200)),
  /** Changes of stored rows, each of which a replay detects. */
  rowChanges: of(20_000, 100_000),
  /** Stored events that are changed, each of which `session verify` names. */
  changedEvents: of(500, 2000),
  /** One of so many points at which an execution, a backup or a restore can die. */
  deathEvery: of(5, 1),
  /** Days that each plan lives in each zone: 100,000 in all at size full. */
  planDays: of(60, 1250),
  /** One of so many steps of an update at which choird is killed. */
  updateStep: of(5, 1),
  /** How long hostile agents go on beside honest ones. */
  siege_ms: of(3000, 10_000)
} as const

/** Registers a test at size `full` alone: `atFull(it.live)("is …", …)`. For a case beside those that every size has. */
export const atFull = <Register extends (...test: never) => unknown>(register: Register): Register =>
  isFull ? register : (((): void => undefined) as unknown as Register)

/** The longest wait for what the tests of a suite share, such as a database: many times what it takes on a quiet machine. */
export const LAYER_MS_MAX = 300_000

/** Those of a list that every size has, and the others at size `full`. */
export const atSize = <A>(ci: ReadonlyArray<A>, more: ReadonlyArray<A>): ReadonlyArray<A> => [
  ...ci,
  ...(isFull ? more : [])
]

/** How many of so many random histories each size tries: a property that fails does so in most of them. */
export const historiesOf = (full: number): number => of(Math.ceil(full * 0.4), full)
