/** choirctl prune: removes at once what is older than config.json keeps it. */
import { Effect, Option, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import { askStream } from "#src/choirctl/client/ask.ts"
import { failed, refusedByChoird } from "#src/choirctl/terminal/failure.ts"
import { print } from "#src/choirctl/terminal/print.ts"
import { withProgress } from "#src/choirctl/terminal/progress.ts"
import { pruneText } from "#src/choirctl/render/retention.ts"

export const prune = Command.make(
  "prune",
  {
    dry_run: Flag.Boolean("dry-run").pipe(
      Flag.withDescription("Say what would go, and remove nothing"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function* ({ dry_run }) {
    let doing = "looking for what is old"
    const last = yield* askStream("retention", (choird) => choird.prune({ payload: { dry_run } })).pipe(
      Stream.tap((step) => Effect.sync(() => void (doing = step.type === "step" ? `pruning ${step.text}` : doing))),
      Stream.runLast,
      withProgress(() => doing)
    )
    const end = Option.getOrUndefined(last)
    if (end?.type === "failed") return yield* refusedByChoird(end.error)
    if (end?.type !== "done")
      return yield* failed("PRUNE_BROKE_OFF", "choird ended before everything was pruned", "choirctl prune")
    yield* print(end.result, pruneText)
  })
).pipe(
  Command.withDescription(
    "Remove what is older than retention in config.json says; choird does it by itself over time"
  ),
  Command.withExamples([{ command: "choirctl prune --dry-run" }])
)
