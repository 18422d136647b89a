/** A skill that is added as a script does it: by the digest that the first, refused command shows. */
import { Effect } from "effect"
import { choirctl } from "./choirctl.ts"

/** The arguments that add what `choirctl skill add` shows for these. */
export const agreedSkill = (home: string, args: ReadonlyArray<string>) =>
  Effect.flatMap(choirctl(home, ["skill", "add", ...args]), ({ err }) => {
    const digest = /--digest ([0-9a-f]+) --yes/u.exec(err)?.[1]
    return digest === undefined
      ? Effect.die(new Error(`choirctl skill add shows no digest: ${err}`))
      : Effect.succeed(["skill", "add", ...args, "--digest", digest, "--yes"])
  })
