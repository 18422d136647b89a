/** A skill that is added as a script does it: by the digest that the first, refused command shows. */
import { Effect } from "effect"
import { choirctl } from "./choirctl.ts"

/** The arguments that add what `choirctl skill add` shows for these. */
export const agreedSkill = (home: string, args: ReadonlyArray<string>) =>
  Effect.map(choirctl(home, ["skill", "add", ...args]), ({ err }) => [
    "skill",
    "add",
    ...args,
    "--digest",
    /--digest ([0-9a-f]+) --yes/u.exec(err)?.[1] ?? "",
    "--yes"
  ])
