/** The environment of choird, for tests in whose process it lives. */
import { Effect } from "effect"

const setVariable = (name: string, value: string | undefined) => {
  if (value === undefined) delete process.env[name]
  else process.env[name] = value
}

/** What the environment of choird says, until the test ends. */
export const withVariable = (name: string, value: string | undefined) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const before = process.env[name]
      setVariable(name, value)
      return before
    }),
    (before) => Effect.sync(() => setVariable(name, before))
  )
