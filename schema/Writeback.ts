/** A job's account of its work before it ends: how far it came, and what another job has to know to continue. */
import { Schema } from "effect"

const Line = Schema.NonEmptyString.check(Schema.isMaxLength(500))

export const Writeback = Schema.Struct({
  status: Schema.Literals(["done", "partial", "blocked", "failed"]).annotate({ description: "How the task stands" }),
  progress: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 100 })).annotate({
    description: "Percent of the task that is done"
  }),
  summary: Schema.NonEmptyString.check(Schema.isMaxLength(2000)).annotate({ description: "What was done" }),
  reflection: Schema.Struct({
    branch: Schema.optionalKey(Line.annotate({ description: "The git branch that holds the work" })),
    commit_sha: Schema.optionalKey(
      // The description belongs to the string: after the check no provider would see it.
      Schema.String.annotate({ description: "Its newest commit" }).check(
        Schema.isPattern(/^[0-9a-f]{7,64}$/u, { message: "a commit is 7 to 64 of 0-9 and a-f" })
      )
    ),
    tests_run: Schema.Array(Line)
      .check(Schema.isMaxLength(32))
      .annotate({ description: "Commands, with their outcome" }),
    blockers: Schema.Array(Line).check(Schema.isMaxLength(32)).annotate({ description: "What stands in the way" })
  }).annotate({ description: "How it was checked, and what is left" }),
  memory_pack: Schema.optionalKey(
    Schema.NonEmptyString.check(Schema.isMaxLength(4000)).annotate({ description: "What later work should remember" })
  )
})
export type Writeback = typeof Writeback.Type
