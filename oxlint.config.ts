/** What the linter refuses: see docs/architecture.md for the direction of imports. */
import { defineConfig, type OxlintConfig } from "oxlint"
import { FLOORS, PROGRAMS, type Program, TOP } from "./tools/rooms.ts"

const noQueueWithoutLimit = (object: string, property: string) => ({
  object,
  property,
  message: "Every queue has a limit with a name (R49)."
})

const FROM_EFFECT = "Take time and chance from Effect, so that the simulation and the tests decide them."

type Rules = NonNullable<OxlintConfig["rules"]>

const imports = (
  ...patterns: ReadonlyArray<{ readonly group: ReadonlyArray<string>; readonly message: string }>
): Rules => ({
  "no-restricted-imports": [
    "error",
    { patterns: patterns.map(({ group, message }) => ({ group: [...group], message })) }
  ]
})

const ENTRY = "**/main.ts"
const LEADS_OUT = "../**"
const othersOf = (tree: string) =>
  ["agent", "choird", "choirctl"].filter((name) => name !== tree).map((name) => `#src/${name}/**`)

/** What a tree of `src/` may not import at all. */
const outside = (program: Program) => {
  const name = program.replace("src/", "")
  const isShared = program === "src/shared"
  return {
    group: [...othersOf(name), "#demo/**", "#tools/**", LEADS_OUT, ...(isShared ? [] : [ENTRY])],
    message: `${name}/ imports schema, shared and ${isShared ? "itself" : name} only.`
  }
}

const filesOf = (program: Program, room: string) => (room === TOP ? `${program}/*.ts` : `${program}/${room}/**`)

/** A rule for each floor of a program but the highest, whose rooms may import all of the program. */
const floorRules = (program: Program) =>
  FLOORS[program].slice(0, -1).map((rooms, floor) => ({
    files: rooms.map((room) => filesOf(program, room)),
    rules: imports(outside(program), {
      group: FLOORS[program]
        .slice(floor + 1)
        .flat()
        .map((room) => `#${filesOf(program, room)}`),
      message: `A room of ${program} imports its own floor and those below it (docs/architecture.md).`
    })
  }))

export default defineConfig({
  plugins: ["typescript", "import", "unicorn", "oxc"],
  categories: { correctness: "error", suspicious: "error", perf: "error" },
  rules: {
    "typescript/consistent-return": "off",
    "typescript/unbound-method": "off",
    "typescript/no-unsafe-type-assertion": "off",
    "no-shadow": "off",
    "no-underscore-dangle": "off",
    "oxc/no-map-spread": "off",
    "no-await-in-loop": "off",
    "unicorn/no-array-sort": "off",
    "unicorn/no-array-reverse": "off",
    "unicorn/consistent-function-scoping": "off",
    "unicorn/require-module-specifiers": "off",
    "import/no-cycle": "error",
    "import/no-unassigned-import": "off",
    "max-lines": ["error", { max: 400, skipBlankLines: true, skipComments: true }]
  },
  ignorePatterns: ["dist", "node_modules", "test/library/stranger"],
  overrides: [
    {
      files: ["src/**", "schema/**", "demo/**", "tools/**"],
      rules: {
        "max-lines-per-function": ["error", { max: 100 }],
        "no-restricted-properties": [
          "error",
          noQueueWithoutLimit("Queue", "unbounded"),
          noQueueWithoutLimit("PubSub", "unbounded"),
          noQueueWithoutLimit("Stream", "bufferUnbounded"),
          { object: "Date", property: "now", message: FROM_EFFECT },
          { object: "Math", property: "random", message: FROM_EFFECT }
        ]
      }
    },
    {
      files: ["src/agent/**", "src/shared/**", "schema/**", "src/choird/sessions/**"],
      rules: {
        "no-restricted-globals": [
          "error",
          ...["setTimeout", "setInterval", "setImmediate", "queueMicrotask"].map((name) => ({
            name,
            message: FROM_EFFECT
          }))
        ]
      }
    },
    {
      files: ["schema/**"],
      rules: imports({
        group: ["#src/**", "#demo/**", "#tools/**", "node:*", "@effect/*", "../*"],
        message: "schema/ is pure data: it imports effect and itself only."
      })
    },
    ...PROGRAMS.flatMap((program) => [
      { files: [`${program}/**`], rules: imports(outside(program)) },
      ...floorRules(program)
    ]),
    {
      files: ["tools/**"],
      rules: imports({
        group: [...othersOf("tools"), "#demo/**", LEADS_OUT, ENTRY],
        message: "tools/ imports schema, shared and tools only."
      })
    },
    {
      files: ["demo/**"],
      rules: imports({
        group: [...othersOf("demo"), LEADS_OUT, ENTRY],
        message: "demo/ imports schema, shared, tools and demo only."
      })
    }
  ]
})
